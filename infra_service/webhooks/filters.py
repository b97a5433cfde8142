from django_filters import CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import EnumFilter, IdentifierFilter
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent


class WebhookEventFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of events: the location at the time of the event."""

    component_id = UUIDFilter()
    environment_id = UUIDFilter()
    application_id = UUIDFilter()
    cluster_id = UUIDFilter()
    component = IdentifierFilter(field_name="component_slug")
    environment = IdentifierFilter(field_name="environment_slug")
    application = IdentifierFilter(field_name="application_slug")
    cluster = IdentifierFilter(field_name="cluster_name")

    class Meta:
        model = WebhookEvent
        fields = ()


class WebhookFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of endpoints."""

    name = CharFilter()
    created_at = IsoDateTimeFilter()

    class Meta:
        model = WebhookEndpoint
        fields = ()


class DeliveryFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of the deliveries of an endpoint."""

    status = EnumFilter(choices=Delivery.Status.choices)

    class Meta:
        model = Delivery
        fields = ()
