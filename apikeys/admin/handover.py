"""A new secret on its way from the form that issues it to the page that shows it, once.

The session keeps it encrypted, and a cookie of the browser the key; the page takes both away. So a
reload shows nothing, and whoever reads the database or the log finds nothing.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_NAME: Final = "issued_secret"
_NONCE_BYTES: Final = 12
_SECONDS: Final = 120


def give(
    request: HttpRequest, response: HttpResponse, *, credential_id: str, secret: str, path: str
) -> None:
    """Keep the secret for the page of this path."""
    key, nonce = AESGCM.generate_key(256), secrets.token_bytes(_NONCE_BYTES)
    sealed = nonce + AESGCM(key).encrypt(nonce, secret.encode(), credential_id.encode())
    request.session[_NAME] = base64.b64encode(sealed).decode()
    response.set_cookie(
        _NAME,
        base64.urlsafe_b64encode(key).decode(),
        max_age=_SECONDS,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )


def take(request: HttpRequest, credential_id: str) -> str | None:
    """Return the secret and forget it; None where there is none of this credential any more."""
    kept, key = request.session.pop(_NAME, None), request.COOKIES.get(_NAME)
    if kept is None or key is None:
        return None
    sealed = base64.b64decode(kept)
    try:
        cipher = AESGCM(base64.urlsafe_b64decode(key))
        opened = cipher.decrypt(
            sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], credential_id.encode()
        )
    except (InvalidTag, ValueError, binascii.Error):
        return None
    return opened.decode()


def forget(response: HttpResponse, path: str) -> None:
    """Take the key away from the browser."""
    response.delete_cookie(_NAME, path=path, samesite="Strict")
