"""Re-encryption of values that STATE_ENCRYPTION_KEYS protects, and a list of the keys in use.

``states.keeping.reencryption`` re-encrypts documents, because it also moves them between stores.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from django.apps import apps
from django.db import connection

from infra_service.lib.api.idempotent_requests import IdempotentRequest
from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.database.batches import in_batches
from infra_service.lib.encryption import current_key, keyring
from infra_service.sign_on import code_secrets
from infra_service.webhooks.actions import reencrypt_secrets
from infra_service.webhooks.models import WebhookEndpoint
from states.keeping import reencryption
from states.models import OUTDATED, State
from states.resources import indexing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECOND_FACTORS: Final = "mfa_authenticator"
KEY_MISSING: Final = "Its encryption key is not configured."
_UNREADABLE: Final = "It cannot be decrypted with its key."


class OlderValue(NamedTuple):
    """A stored value that needs a key other than the first."""

    item: str
    #: The name of the key, or the beginning of the name. Empty if the name is not recorded.
    key_name: str

    @property
    def is_key_missing(self) -> bool:
        """Return whether the key is not configured."""
        return not any(name.startswith(self.key_name) for name in keyring())

    @property
    def problem(self) -> str:
        """Return the reason why the value could not be re-encrypted."""
        return KEY_MISSING if self.is_key_missing else _UNREADABLE


class Kind(NamedTuple):
    """A kind of encrypted values: its names, and functions that re-encrypt and list the values."""

    name: str
    label: str
    #: Encrypts all values with the first key, and returns the number of re-encrypted values.
    reencrypt: Callable[[], int]
    older: Callable[[], Iterator[OlderValue]]


def older_documents() -> Iterator[OlderValue]:
    """Yield the documents that are not encrypted with the first key."""
    for version in in_batches(reencryption.outdated()):
        item = f"state {version.state_id} version {version.number}"
        yield OlderValue(item, version.encryption_key)


def _older_secrets() -> Iterator[OlderValue]:
    for endpoint in in_batches(WebhookEndpoint.objects.with_secrets_of_other_keys()):
        if endpoint.encryption_key != current_key():
            yield OlderValue(f"webhook {endpoint.pk}", endpoint.encryption_key)
        if endpoint.key_of_url != current_key():
            yield OlderValue(f"webhook {endpoint.pk} (URL)", endpoint.key_of_url)
        if endpoint.retired_secret_signs and endpoint.retired_encryption_key != current_key():
            item = f"webhook {endpoint.pk} (replaced secret)"
            yield OlderValue(item, endpoint.retired_encryption_key)


def _reencrypt_answers() -> int:
    done = 0
    for request in in_batches(IdempotentRequest.objects.with_answers_of_other_keys()):
        with isolated("encrypt an idempotent response", request.pk):
            done += request.reencrypt()
    return done


def _older_answers() -> Iterator[OlderValue]:
    for request in in_batches(IdempotentRequest.objects.with_answers_of_other_keys()):
        yield OlderValue(f"idempotent response {request.pk}", request.encryption_key)


def _renew_digests() -> int:
    return sum(1 for _ in indexing.renew_digests())


def _older_digests() -> Iterator[OlderValue]:
    for state in in_batches(State.objects.with_digests_of_other_keys(current_key())):
        key_name = "" if state.index_key == OUTDATED else state.index_key.partition(".")[2]
        yield OlderValue(f"resource digests of state {state.pk}", key_name)


def _reencrypt_second_factors() -> int:
    if not apps.is_installed("allauth.mfa"):
        return 0
    # Imported here because the models belong to an optional extra.
    from infra_service.sign_on import second_factor  # noqa: PLC0415

    return second_factor.reencrypt_secrets()


def _older_second_factors() -> Iterator[OlderValue]:
    if not apps.is_installed("allauth.mfa"):
        return
    from infra_service.sign_on import second_factor  # noqa: PLC0415

    for row in second_factor.secrets_of_other_keys():
        yield OlderValue(f"second factor {row.pk}", second_factor.key_name_of(row))


def skipped_second_factors() -> int:
    """Return the number of second factors with another key, which are skipped while sign-on is off.

    The function uses SQL, because the model is not installed while sign-on is off. The table exists
    if sign-on was on before.
    """
    if apps.is_installed("allauth.mfa"):
        return 0
    with connection.cursor() as cursor:
        if _SECOND_FACTORS not in connection.introspection.table_names(cursor):
            return 0
        cursor.execute(f"SELECT data FROM {_SECOND_FACTORS} WHERE type = 'totp'")  # noqa: S608
        secrets = [json.loads(data)["secret"] for (data,) in cursor.fetchall()]
    return sum(code_secrets.key_name_of(secret) != current_key() for secret in secrets)


#: All kinds except documents. Digests come last because they need readable documents.
KINDS: Final = (
    Kind("webhook_secrets", "webhook secrets", reencrypt_secrets, _older_secrets),
    Kind("idempotent_answers", "idempotent responses", _reencrypt_answers, _older_answers),
    Kind("second_factors", "second factors", _reencrypt_second_factors, _older_second_factors),
    Kind("resource_digests", "states' resource digests", _renew_digests, _older_digests),
)
