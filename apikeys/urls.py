from django.conf import settings
from django.urls import include, path, re_path

from apikeys.api.exchange import TokenExchangeView
from apikeys.api.federation_views import IssuerViewSet, TrustPolicyViewSet
from apikeys.api.login_tokens import LoginTokenView
from apikeys.api.views import AccessTokenViewSet, ApiKeyViewSet, AuditEventListView, WhoAmIView
from infra_service.lib.api.viewsets import ResourceRouter

router = ResourceRouter()
router.register("api-keys", ApiKeyViewSet, basename="api-key")
router.register("access-tokens", AccessTokenViewSet, basename="access-token")
router.register("issuers", IssuerViewSet, basename="issuer")
router.register("trust-policies", TrustPolicyViewSet, basename="trust-policy")

_LOGIN = [re_path(r"^v1/oauth/login/?$", LoginTokenView.as_view(), name="terraform-login-token")]

urlpatterns = [
    path("v1/", include(router.urls)),
    re_path(r"^v1/oauth/token/?$", TokenExchangeView.as_view(), name="token-exchange"),
    *(_LOGIN if settings.TERRAFORM_LOGIN else ()),
    re_path(r"^v1/whoami/?$", WhoAmIView.as_view(), name="whoami"),
    re_path(r"^api/v1/audit-events/?$", AuditEventListView.as_view(), name="audit-events"),
]
