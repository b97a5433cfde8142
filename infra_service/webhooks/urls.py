from django.urls import include, path, re_path

from infra_service.lib.api.viewsets import ResourceRouter
from infra_service.webhooks.api.views import DeliveryViewSet, WebhookViewSet

router = ResourceRouter()
router.register("webhooks", WebhookViewSet, basename="webhook")

_DELIVERIES = r"^webhooks/(?P<webhook_id>[0-9A-Za-z._~-]+)/deliveries"

urlpatterns = [
    path("", include(router.urls)),
    re_path(_DELIVERIES + r"/?$", DeliveryViewSet.as_view({"get": "list"}), name="delivery-list"),
    re_path(
        _DELIVERIES + r"/(?P<delivery_id>[0-9A-Za-z._~-]+):redeliver/?$",
        DeliveryViewSet.as_view({"post": "redeliver"}),
        name="delivery-redeliver",
    ),
]
