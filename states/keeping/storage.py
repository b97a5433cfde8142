"""Documents in the object store of ``STATE_STORAGE_URL``.

An object contains the encrypted document that the row would otherwise contain. It is written before
its row, with a unique name, and never changed. Each re-encryption creates a new object. An object
without a row was therefore written by a writer that lost a race or crashed, and is deleted later.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from states.errors import StorageMisconfigured, StorageUnavailable

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator

    from django.core.files.base import File
    from django.core.files.storage import Storage

    Payload = bytes | bytearray | memoryview

log = structlog.get_logger("states.storage")

_ALIAS: Final = "states"
_MD5: Final = re.compile("[0-9a-f]{32}")
#: S3's error codes for a wrong configuration. For HEAD requests, the code is the HTTP status. For
#: all operations except ``written_at``, 404 means a missing bucket.
_REFUSALS: Final = frozenset({
    "404", "403", "301", "NoSuchBucket", "InvalidBucketName", "AllAccessDisabled", "AccessDenied",
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed",
    "PermanentRedirect",
})  # fmt: skip
_WITHOUT_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})


class ObjectMissingError(Exception):
    """An object that does not exist, although the store responds."""


def is_configured() -> bool:
    """Return whether an object store is configured."""
    return _ALIAS in settings.STORAGES


def receives_new_documents() -> bool:
    """Return whether new documents are stored in the object store."""
    return is_configured() and settings.STATE_STORAGE_WRITES


def store() -> Storage:
    """Return the object store.

    Raises:
        StorageUnavailable: no store is configured.
    """
    if not is_configured():
        raise StorageUnavailable(
            "The document is in an object store, but STATE_STORAGE_URL is not set. Contact an "
            "operator."
        )
    return storages[_ALIAS]


def place(
    payload: Payload, state_id: uuid.UUID, version_id: uuid.UUID
) -> tuple[Payload | None, str]:
    """Return the document for the row of a new version, or store it and return the object's name.

    Raises:
        StorageUnavailable: the store did not accept the document.
    """
    if receives_new_documents():
        return None, put(payload, state_id, version_id)
    return payload, ""


def put(payload: Payload, state_id: uuid.UUID, version_id: uuid.UUID) -> str:
    """Write a new object and return its name.

    Raises:
        StorageUnavailable: the store did not accept the object, or did not respond.
    """
    name = f"{state_id}/{version_id}.{secrets.token_hex(8)}"
    with answering("put", name):
        return store().save(name, ContentFile(bytes(payload)))


class Fetched(NamedTuple):
    """An object's content, and whether it matches the size and digest in the store's response."""

    content: bytes
    is_consistent: bool


def fetch(name: str) -> Fetched:
    """Return the content of an object.

    Raises:
        ObjectMissingError: the object does not exist.
        StorageUnavailable: the store does not respond.
    """
    try:
        with answering("get", name), store().open(name) as file:
            content: bytes = file.read()
            return Fetched(content, _matches_announcement(file, content))
    except ObjectMissingError:
        find_bucket()  # an error if the bucket is missing
        raise


def find_bucket() -> None:
    """Verify that the store has the bucket and accepts the credentials.

    Raises:
        StorageMisconfigured: the bucket is missing, or the credentials are refused.
        StorageUnavailable: the store does not respond.
    """
    bucket = getattr(store(), "bucket", None)
    if bucket is not None:
        with answering("find bucket", bucket.name):
            bucket.meta.client.head_bucket(Bucket=bucket.name)


def _matches_announcement(file: File[bytes], content: bytes) -> bool:
    """Return whether the bytes match the length and digest in the store's response.

    The ETag in S3 is the MD5 digest of an object, unless the object has several parts or is
    encrypted with a KMS key.
    """
    s3_object = getattr(file, "obj", None)
    if len(content) != file.size:
        return False
    tag = str(getattr(s3_object, "e_tag", None) or "").strip('"')
    if not _MD5.fullmatch(tag) or "kms" in str(getattr(s3_object, "server_side_encryption", "")):
        return True
    return hashlib.md5(content, usedforsecurity=False).hexdigest() == tag


def delete(name: str) -> None:
    """Delete an object, which may already be deleted.

    Raises:
        StorageUnavailable: the store refused the request, or did not respond.
    """
    with contextlib.suppress(ObjectMissingError), answering("delete", name):
        store().delete(name)


def discard(*names: str) -> None:
    """Delete objects without a row. If the store is unavailable, a later sweep deletes the rest."""
    with contextlib.suppress(StorageUnavailable):
        for name in filter(None, names):
            delete(name)


def written_at(name: str) -> dt.datetime:
    """Return the time at which an object was written, by the clock of the store.

    Raises:
        ObjectMissingError: the object does not exist.
        StorageUnavailable: the store does not respond.
    """
    with answering("head", name):
        return store().get_modified_time(name)


def now() -> dt.datetime:
    """Return the time of the store's clock, at which it writes a temporary object.

    Raises:
        StorageUnavailable: the store did not accept the object, or does not return it.
    """
    name = f"clock.{secrets.token_hex(8)}"
    with answering("put", name):
        store().save(name, ContentFile(b"clock"))
    try:
        return written_at(name)
    except ObjectMissingError as error:
        raise StorageUnavailable from error
    finally:
        discard(name)


@contextlib.contextmanager
def answering(operation: str, name: str) -> Iterator[None]:
    """Convert exceptions of the store's client into errors of the service.

    Raises:
        ObjectMissingError, StorageUnavailable: see ``fetch``.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectMissingError(name) from error
    except StorageUnavailable:
        raise
    except Exception as error:  # each client library has its own exceptions
        code = _code_of(error)
        if code == "NoSuchKey" or (operation, code) == ("head", "404"):  # deleted concurrently
            raise ObjectMissingError(name) from error
        if code in _REFUSALS or type(error).__name__ in _WITHOUT_CREDENTIALS:
            reason = code or type(error).__name__
            log.error("storage_misconfigured", operation=operation, object=name, reason=reason)  # noqa: TRY400 - no fault of the code
            raise StorageMisconfigured from error
        log.warning("storage_unavailable", operation=operation, object=name, exc_info=error)
        raise StorageUnavailable from error


def _code_of(error: Exception) -> str:
    """Return the S3 code of an error, or an empty string if it has no code."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}) if isinstance(response, dict) else {}
    return str(found.get("Code", ""))
