"""``terraform login``: OAuth 2.0 authorization codes with PKCE (RFC 6749, RFC 7636, RFC 8252).

``terraform login`` opens the authorization page in a browser. After a confirmation, the page sends
a code to the client's listener on the same computer, and the client exchanges the code for an
access token. A code is encrypted and not stored. It contains the id of its future access token, so
that the primary key prevents a second exchange.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import re
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from apikeys.identifiers import access_token_id
from infra_service.lib import encryption

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT_ID: Final = "terraform-cli"
#: The first and the last port of the client's listener.
PORTS: Final = (10000, 10010)
#: The admin permission to issue tokens.
PERMISSION: Final = "apikeys.add_accesstoken"
#: The lifetime of a code. The client exchanges it immediately.
_LIFETIME: Final = dt.timedelta(minutes=1)
_CONTEXT: Final = b"authorization code of terraform login"
#: The maximum number of characters of a code. Longer codes are invalid.
_LONGEST: Final = 1000
_REDIRECT: Final = re.compile(r"http://localhost:([1-9][0-9]{4})/login", re.ASCII)
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_STATE: Final = re.compile(r"[\x20-\x7e]{1,500}", re.ASCII)


class InvalidRequestError(Exception):
    """An authorization request that does not come from ``terraform login``."""


class LoginRequest(NamedTuple):
    """The client's request for a code: its listener, PKCE challenge and state."""

    redirect_uri: str
    challenge: str
    state: str

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Parse the query parameters of an authorization request.

        Raises:
            InvalidRequestError: the client is unknown, the S256 challenge or the state is missing,
                or the redirect URI is not the address of the client's listener.
        """
        fixed = {
            "client_id": CLIENT_ID,
            "response_type": "code",
            "code_challenge_method": "S256",
        }
        for name, value in fixed.items():
            if given.get(name) != value:
                raise InvalidRequestError(f"{name} must be {value}.")
        request = cls(*(given.get(n, "") for n in ("redirect_uri", "code_challenge", "state")))
        found = _REDIRECT.fullmatch(request.redirect_uri)
        if found is None or not PORTS[0] <= int(found[1]) <= PORTS[1]:
            first, last = PORTS
            raise InvalidRequestError(
                f"redirect_uri must be http://localhost:PORT/login, with port {first} to {last}."
            )
        if not _CHALLENGE.fullmatch(request.challenge):
            raise InvalidRequestError(
                "code_challenge must be the SHA-256 of a verifier, as base64url without padding."
            )
        if not _STATE.fullmatch(request.state):
            raise InvalidRequestError("state must have 1 to 500 printable ASCII characters.")
        return request

    def redirect(self, code: str) -> str:
        """Return the URL of the client's listener, with the code."""
        return f"{self.redirect_uri}?{urlencode({'code': code, 'state': self.state})}"


class Code(msgspec.Struct, array_like=True, kw_only=True):
    """The content of a code: the access token to issue, and the client that requested it."""

    user_id: uuid.UUID
    scopes: list[str]
    token_expires_at: dt.datetime
    redirect_uri: str
    challenge: str
    token_id: str = msgspec.field(default_factory=access_token_id)
    expires_at: dt.datetime = msgspec.field(default_factory=lambda: timezone.now() + _LIFETIME)

    def seal(self) -> str:
        """Return the encrypted code."""
        return encryption.encrypt_to_text(_CONTEXT, msgspec.msgpack.encode(self))

    @classmethod
    def open(cls, text: str) -> Self | None:
        """Decrypt a code. Return None if it is invalid or expired."""
        plaintext = encryption.decrypt_text(_CONTEXT, text[:_LONGEST])
        code = None if plaintext is None else msgspec.msgpack.decode(plaintext, type=cls)
        return None if code is None or code.expires_at <= timezone.now() else code

    def is_for(self, redirect_uri: str, verifier: str) -> bool:
        """Return whether this client requested the code, by its PKCE verifier and redirect URI."""
        digest = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_same = hmac.compare_digest(challenge, self.challenge)
        return is_same and redirect_uri == self.redirect_uri


def services() -> dict[str, Any]:
    """Return the service ``login.v1`` for Terraform's service discovery, if it is enabled."""
    if not settings.TERRAFORM_LOGIN:
        return {}
    login = {
        "client": CLIENT_ID,
        "grant_types": ["authz_code"],
        "authz": reverse("admin:terraform_login"),
        "token": reverse("terraform-login-token"),
        "ports": PORTS,
    }
    return {"login.v1": login}
