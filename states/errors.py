"""The errors of the state backend.

Terraform shows its user only the status of a refused POST or UNLOCK, not the body, so the log has
the reason too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import APIException, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping


class StateNotFound(NotFound):
    meaning = "Nothing is stored here, or the token does not reach it."
    default_code = "STATE_NOT_FOUND"
    default_detail = "There is no such state."
    advice = "GET /api/v1/states lists those that your token reaches."


class ApplicationNotFound(NotFound):
    meaning = "There is none, or the token does not reach it."
    default_code = "APPLICATION_NOT_FOUND"
    default_detail = "There is no such application."
    advice = "GET /api/v1/applications lists those that your token reaches, with their ids."


class ComponentNotFound(NotFound):
    meaning = "There is none, or the token does not reach it."
    default_code = "COMPONENT_NOT_FOUND"
    default_detail = "There is no such component."
    advice = "GET /api/v1/components lists those that your token reaches, with their ids."


class EnvironmentNotFound(NotFound):
    meaning = "There is none, or the token does not reach it."
    default_code = "ENVIRONMENT_NOT_FOUND"
    default_detail = "There is no such environment."
    advice = "GET /api/v1/environments lists those that your token reaches, with their ids."


#: The error for a missing entry of each kind.
ENTRY_NOT_FOUND: Final = {
    "application": ApplicationNotFound,
    "component": ComponentNotFound,
    "environment": EnvironmentNotFound,
}


class EntryExists(APIException):
    meaning = "Another entry of the same parent has this name, or has or had the slug made from it."
    status_code = 409
    rpc_status = "ALREADY_EXISTS"
    default_code = "ALREADY_EXISTS"
    default_detail = "Another entry has this name, or the slug made from it."
    advice = "Send a slug, or slug_suffix: true for a free one."

    def __init__(self, kind: str = "", metadata: Mapping[str, str] | None = None) -> None:
        """Name the other entry; without ``metadata``, the caller must not learn its identity."""
        self.metadata = metadata or {}
        name = self.metadata.get("name") or self.metadata.get("id")
        super().__init__(f'{self.default_detail} It is the {kind} "{name}".' if name else None)


class SlugTaken(EntryExists):
    meaning = "Another entry of the same parent has this slug, or had it."
    default_code = "SLUG_TAKEN"
    default_detail = "Another entry has this slug, or had it."
    advice = "Send another slug."


class EntryInUse(APIException):
    meaning = "The entry has states or components, or deleted states within their retention."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "ENTRY_IN_USE"
    advice = "Delete its states first; housekeeping removes deleted states after their retention."

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'The {kind} "{name}" still has states or components.')


class InvalidDocument(APIException):
    meaning = (
        "The document is not a JSON object, has a serial or a lineage that cannot be right, or is "
        "no state and would replace one."
    )
    status_code = 400
    default_code = "INVALID_DOCUMENT"


class InvalidLockInfo(APIException):
    meaning = "The body of a LOCK or UNLOCK is not LockInfo."
    status_code = 400
    default_code = "INVALID_LOCK_INFO"


class ContentMd5Mismatch(APIException):
    meaning = "The body that arrived is not the body that was sent."
    status_code = 400
    default_code = "CONTENT_MD5_MISMATCH"
    default_detail = "Content-MD5 does not match the body."


class StateLocked(APIException):
    meaning = (
        "Another lock holds the state; its LockInfo is in the answer, where Terraform looks for it."
    )
    status_code = 423
    default_code = "STATE_LOCKED"

    def __init__(self, holder: Mapping[str, str]) -> None:
        who, operation = holder["Who"] or "somebody", holder["Operation"]
        super().__init__(f"The state is locked by {who} ({operation}).")
        self.top_level = holder


class LockNotHeld(APIException):
    meaning = "The given lock does not hold the state, so its owner must not write or unlock."
    status_code = 409
    default_code = "LOCK_NOT_HELD"
    default_detail = "The given lock ID does not hold this state."


class LockRequired(APIException):
    meaning = "The environment demands a lock for every push, and this one came without."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "LOCK_REQUIRED"
    default_detail = (
        "The environment demands a lock for every push, and this one came without: lock_address "
        "is missing in the backend block, or -lock=false was given. Set lock_address and "
        "unlock_address to the same as address."
    )


class SerialConflict(APIException):
    meaning = "Without a lock, the serial must grow."
    status_code = 409
    default_code = "SERIAL_CONFLICT"

    def __init__(self, pushed: int, current: int) -> None:
        super().__init__(f"The serial must be greater than {current}, but is {pushed}.")
        self.metadata = {"serial": str(pushed), "current_serial": str(current)}


class LineageMismatch(APIException):
    meaning = "Without a lock, the lineage must stay: another one is another state."
    status_code = 409
    default_code = "LINEAGE_MISMATCH"

    def __init__(self, pushed: str, current: str) -> None:
        super().__init__("The document has another lineage than the stored state.")
        self.metadata = {"lineage": pushed, "current_lineage": current}


class WriteConflict(APIException):
    meaning = "Other writers were faster, again and again."
    status_code = 503
    default_code = "WRITE_CONFLICT"
    default_detail = "Too many writers at once; send the request again."
    wait = 1


class DocumentUnreadable(APIException):
    """A stored document is unreadable; the service never returns wrong bytes."""


class DocumentDamaged(DocumentUnreadable):
    meaning = "The stored bytes are not the bytes that were stored."
    status_code = 500
    default_code = "DOCUMENT_DAMAGED"
    default_detail = "The stored document is damaged."


class DocumentKeyMissing(DocumentUnreadable):
    meaning = "The key that encrypts the document is not in STATE_ENCRYPTION_KEYS."
    status_code = 500
    default_code = "DOCUMENT_KEY_MISSING"
    default_detail = "The encryption key of the stored document is not configured."


class DocumentMissing(DocumentUnreadable):
    meaning = (
        "The object store answers, and has no such object: it may be late, or the object was lost."
    )
    status_code = 503
    default_code = "DOCUMENT_MISSING"
    default_detail = "The object that holds the document is missing."
    wait = 5


class StorageInconsistent(DocumentUnreadable):
    meaning = "The object store sent other bytes than it says that it holds, or others each time."
    status_code = 503
    default_code = "STORAGE_INCONSISTENT"
    default_detail = "The object store returns other bytes than those that it says it holds."
    wait = 5


class VersionNotFound(NotFound):
    meaning = "The state has no such version, or it has been pruned."
    default_code = "VERSION_NOT_FOUND"
    default_detail = "The state has no version of this number, or no longer has it."
    advice = "GET /api/v1/states/{id}/versions lists those that it has."


class FactsNotFound(NotFound):
    meaning = "No pipeline has told facts of this version."
    default_code = "FACTS_NOT_FOUND"
    default_detail = "No pipeline has told facts of this version."
    advice = "A pipeline tells them by PUT to this path, after its apply."


class StateEncrypted(APIException):
    meaning = "OpenTofu encrypted the document on the client, so that nobody else can look into it."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_ENCRYPTED"
    default_detail = (
        "The document is encrypted by OpenTofu; only its owner's configuration can read it."
    )


class StateFormatUnsupported(APIException):
    meaning = (
        "The document is none of Terraform's state format 4; it is stored and served all the same."
    )
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_FORMAT_UNSUPPORTED"

    def __init__(self, problem: str, format_version: str = "4") -> None:
        super().__init__(f"The document is not of state format 4: {problem}.")
        self.metadata = {"format_version": format_version}


class StateTooComplex(APIException):
    meaning = "Looking into the document would take too long, or too much memory, for its size."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_TOO_COMPLEX"
    default_detail = (
        "The document holds so many small or deeply interwoven values that it is not looked into; "
        "it can be read whole."
    )


class StorageUnavailable(APIException):
    meaning = "The object store did not answer, or refused; nothing was changed."
    status_code = 503
    default_code = "STORAGE_UNAVAILABLE"
    default_detail = "The object store that holds the documents is not available now; try again."
    wait: int | None = 2


class StorageMisconfigured(StorageUnavailable):
    meaning = (
        "The object store has no bucket of the configured name, or does not accept the service's "
        "credentials; an operator must change the configuration."
    )
    default_code = "STORAGE_MISCONFIGURED"
    default_detail = (
        "The object store refuses the service. Repeating does not help; tell an operator."
    )
    wait = None
