"""Second factors for password logins: time-based codes and passkeys.

django-allauth provides the table and the passkey ceremony. This module differs from allauth in two
ways: a code works once across all processes instead of once per process, and secrets are encrypted.
"""

from __future__ import annotations

import base64
import hmac
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import structlog
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, generate_totp_secret, hotp_value
from allauth.mfa.webauthn.internal import auth as webauthn
from django.db import DatabaseError, transaction
from django.utils import timezone

from infra_service.lib.api.parsers import decoded
from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.encryption import current_key
from infra_service.sign_on import code_secrets

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apikeys.models import User

log = structlog.get_logger("infra_service.sign_on")

_CODE: Final = re.compile(r"[0-9]{6}")
_PERIOD: Final = 30
_OFFERED: Final = "second_factor_offered"
CODES, PASSKEY = Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN


def factors_of(user: User) -> list[Any]:
    """Return the rows of the user's second factors, the oldest first."""
    found = Authenticator.objects.filter(user_id=user.pk, type__in=(CODES, PASSKEY))
    return list(found.order_by("pk"))


def code_is_right(user: User, code: str) -> bool:
    """Return whether the code is valid, and mark it as used.

    A code is valid once, in its own and in the adjacent periods of 30 seconds.
    """
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update()
        row = rows.filter(user_id=user.pk, type=CODES).first()
        if row is None:
            return False
        try:
            secret = code_secrets.decrypt(row.data["secret"], user.pk)
        except code_secrets.SecretUnreadableError:
            log.warning("second_factor_of_another_key", user=user.get_username())
            return False
        counter = _counter_of(secret, code)
        if counter is None or counter <= row.data.get("used", 0):
            return False
        row.data["used"] = counter
        row.last_used_at = timezone.now()
        row.save(update_fields=["data", "last_used_at"])
    return True


def passkey_question(user: User) -> dict[str, Any]:
    """Return the passkey challenge, and store the expected response in the session."""
    question: dict[str, Any] = webauthn.begin_authentication(user)
    return question


def passkey_is_right(user: User, answer: str) -> bool:
    """Return whether a passkey of the user has answered the challenge in the session."""
    try:
        credential = _credential(answer)
        webauthn.parse_authentication_response(credential)
        row = webauthn.complete_authentication(user, credential)
    except DatabaseError:
        raise
    except Exception:  # noqa: BLE001 - from allauth, fido2, cryptography or struct
        return False
    finally:
        webauthn.clear_state()  # a challenge is valid once
    row.record_usage()
    return True


def offered_secret(request: HttpRequest, user: User) -> str:
    """Return a new secret for codes, stored in the session until a code confirms it."""
    with suppress(KeyError, code_secrets.SecretUnreadableError):
        return code_secrets.decrypt(request.session[_OFFERED], user.pk)
    secret: str = generate_totp_secret()
    request.session[_OFFERED] = code_secrets.encrypt(secret, user.pk)
    return secret


def reencrypt_secrets() -> int:
    """Encrypt all secrets with the first key, and return the number of re-encrypted secrets."""
    done = 0
    for row in secrets_of_other_keys():
        with isolated("encrypt a second factor", row.pk):
            done += _reencrypt(row.pk)
    return done


def _reencrypt(pk: int) -> bool:
    with transaction.atomic():
        row = Authenticator.objects.select_for_update().filter(pk=pk).first()
        if row is None or key_name_of(row) == current_key():
            return False
        secret = code_secrets.decrypt(row.data["secret"], row.user_id)
        row.data["secret"] = code_secrets.encrypt(secret, row.user_id)
        row.save(update_fields=["data"])
    return True


def secrets_of_other_keys() -> list[Any]:
    """Return the rows of codes with a secret that is not encrypted with the first key."""
    rows = Authenticator.objects.filter(type=CODES).order_by("pk")
    return [row for row in rows if key_name_of(row) != current_key()]


def key_name_of(row: Any) -> str:
    """Return the name of the key that encrypts the row's secret, or "" for ``SECRET_KEY``."""
    return code_secrets.key_name_of(row.data["secret"])


def address_of_secret(user: User, secret: str, issuer: str) -> str:
    """Return the otpauth URL for authenticator apps, shown as text or as a QR code."""
    query = urlencode({"secret": secret, "issuer": issuer}, quote_via=quote)
    return f"otpauth://totp/{quote(f'{issuer}:{user.get_username()}')}?{query}"


def qr_code_of(address: str) -> str:
    """Return a QR code of the URL, as a data URL."""
    svg = get_adapter().build_totp_svg(address)
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def add_codes(request: HttpRequest, user: User, code: str) -> bool:
    """Store the offered secret for the user if the code matches. Return False otherwise."""
    secret = offered_secret(request, user)
    counter = _counter_of(secret, code)
    if counter is None:
        return False
    data = {"secret": code_secrets.encrypt(secret, user.pk), "used": counter}
    with transaction.atomic():
        Authenticator.objects.filter(user_id=user.pk, type=CODES).delete()
        Authenticator.objects.create(user_id=user.pk, type=CODES, data=data)
    del request.session[_OFFERED]
    return True


def new_passkey_question(user: User) -> dict[str, Any]:
    """Return the registration challenge, and store the expected response in the session."""
    question: dict[str, Any] = webauthn.begin_registration(user, False)  # noqa: FBT003 - allauth's
    return question


def add_passkey(user: User, name: str, answer: str) -> bool:
    """Store a new passkey for the user if it answers the challenge. Return False otherwise."""
    try:
        credential = _credential(answer)
        webauthn.parse_registration_response(credential)
        webauthn.complete_registration(credential)
    except Exception:  # noqa: BLE001 - from allauth, fido2, cryptography or struct
        return False
    finally:
        webauthn.clear_state()
    data = {"name": name, "credential": credential}
    Authenticator.objects.create(user_id=user.pk, type=PASSKEY, data=data)
    return True


def _credential(answer: str) -> Any:
    """Return the JSON of an answer. Refuse text that PostgreSQL cannot store."""
    return decoded(answer.encode())


def _counter_of(secret: str, code: str) -> int | None:
    if not _CODE.fullmatch(code):
        return None
    now = int(time.time()) // _PERIOD
    for counter in (now, now - 1, now + 1):
        if hmac.compare_digest(format_hotp_value(hotp_value(secret, counter)), code):
            return counter
    return None
