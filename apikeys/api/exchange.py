"""``POST /v1/oauth/token``: exchange a platform's token for an access token (RFC 8693)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from rest_framework.response import Response
from rest_framework.views import APIView

from apikeys import actions
from apikeys.actors import Actor
from apikeys.api.exchange_openapi import exchange_schema
from apikeys.api.exchange_parameters import ACCESS_TOKEN_TYPE, RequestRefused, read_parameters
from apikeys.federation.exchange_errors import AssertionRefused, ExchangeRefused
from infra_service.lib.api.throttling import RateLimited, count_exchange, count_failure

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apikeys.models import AccessToken

_NO_STORE: Final = {"Cache-Control": "no-store"}


class OAuthView(APIView):
    """The base class of OAuth token endpoints. The grant in the body is the only credential."""

    http_method_names = ["post"]
    public = True
    authentication_classes = ()

    def issued(self, token: AccessToken, secret: str, **more: str) -> Response:
        """Return the response with a new token (RFC 6749 §5.1)."""
        answer = {
            "access_token": secret,
            **more,
            "token_type": "Bearer",
            "expires_in": token.lifetime_seconds,
            "scope": " ".join(token.scopes),
        }
        return Response(answer, headers=_NO_STORE)

    def handle_exception(self, exc: Exception) -> Response:
        """Return a refusal in the OAuth error format (RFC 6749 §5.2)."""
        if not isinstance(exc, ExchangeRefused):
            return super().handle_exception(exc)
        http: Any = self.request._request
        if isinstance(exc, AssertionRefused) and (exceeded := count_failure(http)):
            return super().handle_exception(RateLimited(exceeded))
        http.error_reason = exc.error.upper()
        ids = f"Request id: {http.request_id}."
        if http.trace_id:
            ids += f" Trace id: {http.trace_id}."
        description = f"{exc.detail} {ids}"
        answer = {"error": exc.error, "error_description": description}
        return Response(answer, status=HTTPStatus.BAD_REQUEST, headers=_NO_STORE)


@exchange_schema
class TokenExchangeView(OAuthView):
    """The exchange of a platform's token for an access token."""

    def post(self, request: Request) -> Response:
        """Exchange a signed token of a pipeline's platform for a service access token.

        `client_id` names the trust policy. Each platform token can be exchanged once. The endpoint
        also accepts the parameters as a JSON object.
        """
        if "HTTP_AUTHORIZATION" in request.META:
            raise RequestRefused(
                "invalid_request", "The Authorization header is not accepted here."
            )
        parameters = read_parameters(request)
        actor = Actor.of_unauthenticated(request)
        with actions.recording_refusals(parameters.policy_id, actor):
            proof = actions.prove(policy_id=parameters.policy_id, token=parameters.token)
            count_exchange(request._request, proof.policy.pk, proof.policy.owner_id)
            token, secret = actions.exchange_assertion(
                proof=proof, scopes=parameters.scopes, ttl=parameters.ttl, actor=actor
            )
        return self.issued(token, secret, issued_token_type=ACCESS_TOKEN_TYPE)
