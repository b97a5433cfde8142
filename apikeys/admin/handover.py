"""One-time transfer of a new secret from the form that issues it to the page that shows it.

The session stores the encrypted secret, and a cookie contains the encryption key. The page deletes
both, so a reload does not show the secret. The database and the log never contain the secret in
plain text.
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


def store(
    request: HttpRequest, response: HttpResponse, *, credential_id: str, secret: str, path: str
) -> None:
    """Store the encrypted secret in the session, and set a cookie with the key for this path."""
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


def load_once(request: HttpRequest, credential_id: str) -> str | None:
    """Return and delete the credential's secret; None if the session does not contain it."""
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
    """Delete the cookie with the key."""
    response.delete_cookie(_NAME, path=path, samesite="Strict")
