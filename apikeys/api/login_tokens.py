"""``POST /v1/oauth/login``: exchange a code of ``terraform login`` for an access token."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError
from django.http import UnreadablePostError

from apikeys import actions
from apikeys.actors import Actor
from apikeys.api.exchange import OAuthView
from apikeys.api.exchange_parameters import RequestRefused
from apikeys.federation.exchange_errors import AssertionRefused
from apikeys.models import User
from apikeys.terraform_login import CLIENT_ID, PERMISSION, Code
from apikeys.tokens import TokenKind
from infra_service.lib.api.bodies import BodyIncomplete

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request
    from rest_framework.response import Response


class LoginCodeRefused(AssertionRefused):
    meaning = (
        "The code of `terraform login` is invalid, expired or already used, or its user may no "
        "longer issue tokens."
    )
    default_detail = "The code is invalid, expired or already used. Run terraform login again."

    def __init__(self) -> None:
        super().__init__("login_code", "")


class LoginTokenView(OAuthView):
    """The token endpoint of ``terraform login``."""

    schema: Any = None  # part of Terraform's login protocol, not of the API

    def post(self, request: Request) -> Response:
        """Issue the personal access token that the user authorized.

        Raises:
            RequestRefused: the grant type or the client is not supported.
            BodyIncomplete: the connection closed before the end of the body.
            LoginCodeRefused: the code is invalid, or the user may no longer issue tokens.
        """
        http = request._request
        try:
            given = http.POST
        except UnreadablePostError as error:
            raise BodyIncomplete from error
        if given.get("grant_type") != "authorization_code":
            raise RequestRefused("unsupported_grant_type", "grant_type must be authorization_code.")
        if _client_of(http) != CLIENT_ID:
            raise RequestRefused("invalid_client", f"client_id must be {CLIENT_ID}.")
        code = Code.open(given.get("code", ""))
        uri, verifier = given.get("redirect_uri", ""), given.get("code_verifier", "")
        if code is None or not code.is_for(uri, verifier):
            raise LoginCodeRefused
        user = User.objects.filter(pk=code.user_id, is_active=True, is_staff=True).first()
        if user is None or not user.has_perm(PERMISSION):
            raise LoginCodeRefused
        try:
            token, secret = actions.issue_access_token(
                kind=TokenKind.PERSONAL,
                user=user,
                name="terraform login",
                scopes=code.scopes,
                expires_at=code.token_expires_at,
                actor=Actor.of_person(http, user),
                token_id=code.token_id,
            )
        except IntegrityError as error:  # the code was already used
            raise LoginCodeRefused from error
        return self.issued(token, secret)


def _client_of(http: HttpRequest) -> str:
    """Return the client id from HTTP Basic, which Terraform tries first, or from the body."""
    scheme, _, encoded = http.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return http.POST.get("client_id", "")
    try:
        return base64.b64decode(encoded, validate=True).decode().removesuffix(":")
    except ValueError:  # not base64, ASCII or UTF-8
        return ""
