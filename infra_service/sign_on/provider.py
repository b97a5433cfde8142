"""Sign-on at the OpenID Connect provider: redirect users to it, and verify its responses.

django-allauth stores ``state`` and the PKCE verifier in the session, and fetches the tokens.
However, it sends no nonce, trusts the issuer that the provider names, and does not verify the
signature of a token that it fetched itself. Therefore, ``id_tokens`` verifies the ID token.
"""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from requests import RequestException

from infra_service.lib.http_client.addresses import is_protected
from infra_service.sign_on.bounded_answers import BoundedAdapter
from infra_service.sign_on.errors import ProviderUnavailableError, SignOnRefusedError
from infra_service.sign_on.id_tokens import IdTokenRefusedError, verified_claims

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class NoSignUp(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """An allauth adapter without registration, and with limits for requests to the provider."""

    def is_open_for_signup(self, _request: HttpRequest, _sociallogin: Any) -> bool:
        return False

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        session.max_redirects = 0
        for scheme in ("https://", "http://"):
            session.mount(scheme, BoundedAdapter())
        return session


class _Endpoints(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The provider's URLs from its discovery document."""

    def __init__(self, request: HttpRequest, provider: OpenIDConnectProvider) -> None:
        super().__init__(request, provider.app.provider_id)
        self._provider = provider

    def get_provider(self) -> OpenIDConnectProvider:
        return self._provider

    def get_callback_url(self, request: HttpRequest, _app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("admin:sign_on_callback"))

    @cached_property
    def openid_config(self) -> dict[str, Any]:
        """Return the discovery document.

        Raises:
            ProviderUnavailableError: the document is missing, has another issuer, or contains an
                unprotected URL.
        """
        config = fetch(self._provider.server_url)
        if config.get("issuer") != settings.OIDC_ISSUER:
            raise ProviderUnavailableError("the discovery document names another issuer")
        if not all(is_protected(str(config.get(name))) for name in _ENDPOINTS):
            raise ProviderUnavailableError("the discovery document contains a URL without https")
        return config


class _Provider(OpenIDConnectProvider):  # type: ignore[misc]
    @cached_property
    def endpoints(self) -> _Endpoints:
        return _Endpoints(self.request, self)

    def get_oauth2_adapter(self, _request: HttpRequest) -> _Endpoints:
        return self.endpoints

    def get_scope(self) -> list[str]:
        """Add the groups scope if the provider supports it. Other providers would reject it."""
        offered = self.endpoints.openid_config.get("scopes_supported") or ()
        return [*self.get_default_scope(), *(["groups"] if "groups" in offered else [])]


def fetch(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL of the provider.

    Raises:
        ProviderUnavailableError: the request failed, or the response is not a JSON object.
    """
    try:
        with get_adapter().get_requests_session() as session:
            answer = session.get(url)
            answer.raise_for_status()
            found = answer.json()
    except (RequestException, ValueError) as error:
        raise ProviderUnavailableError(str(error)) from error
    if not isinstance(found, dict):
        raise ProviderUnavailableError("the response is not a JSON object")
    return found


def redirect_to_provider(request: HttpRequest, next_url: str) -> HttpResponse:
    """Return the redirect to the provider. The session stores state, nonce and PKCE verifier.

    Raises:
        ProviderUnavailableError: the discovery document is unavailable.
    """
    nonce = secrets.token_urlsafe(32)
    answer: HttpResponse = _provider(request).redirect(
        request, AuthProcess.LOGIN, next_url, auth_params={"nonce": nonce}, nonce=nonce
    )
    return answer


class Returned(NamedTuple):
    """The result of a sign-on: the verified claims, the requested page, and the ID token."""

    claims: dict[str, Any]
    address: str
    id_token: str
    #: From the discovery document; None if the provider has no logout.
    end_session_endpoint: object


def claims_of_return(request: HttpRequest) -> Returned:
    """Return the verified claims of the returning user, and the requested page.

    Raises:
        SignOnRefusedError: the identity is not proved.
        ProviderUnavailableError: the provider does not respond.
    """
    provider = _provider(request)
    try:
        state = provider.unstash_redirect_state(request, request.GET.get("state", ""))
    except PermissionDenied as error:
        raise SignOnRefusedError("state") from error
    if "code" not in request.GET:
        raise SignOnRefusedError("provider")
    endpoints = provider.endpoints
    try:
        tokens = endpoints.get_access_token_data(
            request,
            provider.app,
            endpoints.get_client(request, provider.app),
            pkce_code_verifier=state["pkce_code_verifier"],
        )
    except (OAuth2Error, KeyError) as error:  # allauth requires the Content-Type header
        raise SignOnRefusedError("code") from error
    except RequestException as error:
        raise ProviderUnavailableError(str(error)) from error
    try:
        claims = verified_claims(
            tokens.get("id_token"),
            key_set=fetch(endpoints.openid_config["jwks_uri"]),
            issuer=settings.OIDC_ISSUER,
            client_id=settings.OIDC_CLIENT_ID,
            nonce=state["nonce"],
        )
    except IdTokenRefusedError as error:
        raise SignOnRefusedError("id_token") from error
    endpoint = endpoints.openid_config.get("end_session_endpoint")
    return Returned(claims, state.get("next", ""), tokens["id_token"], endpoint)


def _provider(request: HttpRequest) -> _Provider:
    """Return the configured provider, without allauth's database table of providers."""
    issuer = settings.OIDC_ISSUER
    app = SocialApp(
        provider=OpenIDConnectProvider.id,
        # Together with ``sub``, the issuer identifies the user. Other issuers have other users.
        provider_id=issuer,
        client_id=settings.OIDC_CLIENT_ID,
        secret=settings.OIDC_CLIENT_SECRET,
        settings={
            "server_url": f"{issuer.rstrip('/')}/.well-known/openid-configuration",
            "oauth_pkce_enabled": True,
        },
    )
    return _Provider(request, app=app)
