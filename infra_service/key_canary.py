"""Detect wrong encryption keys before a write, with a canary: a known encrypted value.

The database stores the canary. The service verifies it when the server starts, and in ``/readyz``
and ``check --database default``. The database may have been unreachable when the server started, so
each process also verifies the canary before its first encryption. The first verification creates
the canary, unless the newest document needs a missing key. ``rotate_state_keys`` encrypts the
canary with the first key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError, connection, transaction
from rest_framework.exceptions import APIException

from infra_service.lib import encryption
from infra_service.lib.database.probing import connection_of_its_own

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

_CONTEXT: Final = b"encryption canary"
_VALUE: Final = b"the keys of this database"
_TABLE: Final = "infra_service_encryptioncanary"
# SQL, because the start of the server and /readyz do not use Django's connections.
_SELECT: Final = f"SELECT encryption_key, payload FROM {_TABLE}"  # noqa: S608 - a constant
_INSERT: Final = (
    f"INSERT INTO {_TABLE} (id, encryption_key, payload) "  # noqa: S608 - a constant
    "VALUES (1, %s, %s) ON CONFLICT (id) DO NOTHING"
)
_UPDATE: Final = f"UPDATE {_TABLE} SET encryption_key = %s, payload = %s"  # noqa: S608 - a constant
_NEWEST_DOCUMENT: Final = "SELECT encryption_key FROM states_stateversion ORDER BY id DESC LIMIT 1"

# A state of the process, which forks inherit.
_is_verified = False


class EncryptionKeyWrong(APIException):
    meaning = "STATE_ENCRYPTION_KEYS does not contain the encryption key of the database."
    status_code = 503
    default_code = "ENCRYPTION_KEY_WRONG"

    def __init__(self, key_name: str) -> None:
        names = ", ".join(encryption.keyring())
        super().__init__(
            f"The database is encrypted with the key {key_name}, but STATE_ENCRYPTION_KEYS "
            f"contains {names}. The service does not write data with a different key. Add the key "
            f"{key_name} and restart the service. If the key is lost, run rotate_state_keys "
            "--accept-lost-key."
        )


def verify_once(connection: BaseDatabaseWrapper) -> None:
    """Verify the keys with the canary, at most once per process. Create a missing canary.

    Raises:
        EncryptionKeyWrong: no configured key decrypts the canary, or the newest document of a
            database without a canary.
        DatabaseError: the database does not respond, or its schema is outdated.
    """
    global _is_verified  # noqa: PLW0603 - a state of the process
    if _is_verified:
        return
    with connection.cursor() as cursor:
        canary = _read(cursor)
        is_permanent = canary is not None or not connection.in_atomic_block
        if canary is None:
            _refuse_other_documents(cursor)
            cursor.execute(_INSERT, _new())
            canary = _read(cursor)  # another process may have created it first
    key_name, payload = canary
    try:
        encryption.decrypt(_CONTEXT, encryption.Encrypted(payload, key_name))
    except (encryption.KeyMissingError, encryption.DamagedError) as error:
        raise EncryptionKeyWrong(key_name) from error
    _is_verified = is_permanent  # a caller's transaction may be rolled back


def verify_at_start() -> None:
    """Verify the canary before the server accepts requests, if the database responds.

    Raises:
        EncryptionKeyWrong: see ``verify_once``.
    """
    try:
        with connection_of_its_own() as own:
            verify_once(own)
    except DatabaseError:
        return  # /readyz reports the error, and the first encryption verifies the canary
    finally:
        connection.close()  # workers must not inherit the connection


def guard() -> None:
    """Prevent encryption with a wrong key, for ``encryption.guard``.

    Raises:
        EncryptionKeyWrong, DatabaseError: see ``verify_once``.
    """
    if _is_verified:
        return
    try:
        with transaction.atomic():  # a failed statement must not end the caller's transaction
            verify_once(connection)
    except DatabaseError:
        if _TABLE in connection.introspection.table_names():
            raise
        # The schema is older, and has no canary.


def reencrypt(*, accept_lost_key: bool) -> str:
    """Encrypt the canary with the first key. Return the name of a missing key, or an empty text.

    ``accept_lost_key`` replaces the canary, even if it is damaged.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        row = _read(cursor)
        is_current = row is None or row[0] == encryption.current_key()
        if is_current and not accept_lost_key:
            return ""
        if not accept_lost_key and row[0] not in encryption.keyring():
            return str(row[0])
        cursor.execute(_UPDATE, _new())
    return ""


def _new() -> list[Any]:
    payload, key_name = encryption.encrypt_unguarded(_CONTEXT, _VALUE)
    return [key_name, bytes(payload)]


def _read(cursor: CursorWrapper) -> Any:
    cursor.execute(_SELECT)
    return cursor.fetchone()


def _refuse_other_documents(cursor: CursorWrapper) -> None:
    cursor.execute(_NEWEST_DOCUMENT)
    if (newest := cursor.fetchone()) and newest[0] not in encryption.keyring():
        raise EncryptionKeyWrong(newest[0])
