"""The errors of the state backend.

Terraform prints only the status of a refused POST or UNLOCK, not the body. The service therefore
also logs the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import APIException, NotFound

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping


class StateNotFound(NotFound):
    meaning = "The state does not exist, or is outside the binding of the token."
    default_code = "STATE_NOT_FOUND"
    default_detail = "The state does not exist."
    advice = "GET /api/v1/states lists the states that your token can access."


class ApplicationNotFound(NotFound):
    meaning = "The application does not exist, or is outside the binding of the token."
    default_code = "APPLICATION_NOT_FOUND"
    default_detail = "The application does not exist."
    advice = (
        "GET /api/v1/applications lists the applications that your token can access, with "
        "their ids."
    )


class ComponentNotFound(NotFound):
    meaning = "The component does not exist, or is outside the binding of the token."
    default_code = "COMPONENT_NOT_FOUND"
    default_detail = "The component does not exist."
    advice = (
        "GET /api/v1/components lists the components that your token can access, with their ids."
    )


class EnvironmentNotFound(NotFound):
    meaning = "The environment does not exist, or is outside the binding of the token."
    default_code = "ENVIRONMENT_NOT_FOUND"
    default_detail = "The environment does not exist."
    advice = (
        "GET /api/v1/environments lists the environments that your token can access, with "
        "their ids."
    )


#: The error for a missing entry of each kind.
ENTRY_NOT_FOUND: Final = {
    "application": ApplicationNotFound,
    "component": ComponentNotFound,
    "environment": EnvironmentNotFound,
}


class EntryExists(APIException):
    meaning = "Another entry with the same parent has this name, or has or had the derived slug."
    status_code = 409
    rpc_status = "ALREADY_EXISTS"
    default_code = "ALREADY_EXISTS"
    default_detail = "Another entry has this name, or has or had the slug derived from it."
    advice = "Send a slug, or slug_suffix: true to get a free slug."

    def __init__(self, kind: str = "", metadata: Mapping[str, str] | None = None) -> None:
        """Name the other entry, unless ``metadata`` is omitted to keep its identity secret."""
        self.metadata = metadata or {}
        name = self.metadata.get("name") or self.metadata.get("id")
        super().__init__(
            f'{self.default_detail} The other entry is the {kind} "{name}".' if name else None
        )


class SlugTaken(EntryExists):
    meaning = "Another entry with the same parent has or had this slug."
    default_code = "SLUG_TAKEN"
    default_detail = "Another entry has or had this slug."
    advice = "Send another slug."


class EntryInUse(APIException):
    meaning = "The entry has states or components, or deleted states within their retention period."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "ENTRY_IN_USE"
    advice = (
        "Delete the states or components first. Housekeeping removes deleted states after their "
        "retention period."
    )

    def __init__(self, kind: str, name: str) -> None:
        deleted = "states, or deleted states within their retention"
        used_by = "components" if kind == "application" else deleted
        super().__init__(f'The {kind} "{name}" still has {used_by}.')


class WorkspaceExists(APIException):
    meaning = "The workspace exists, or its name refers to the state of another workspace."
    status_code = 422
    rpc_status = "ALREADY_EXISTS"
    default_code = "WORKSPACE_EXISTS"

    def __init__(self, name: str) -> None:
        super().__init__(
            f'Name has already been taken: the name "{name}" refers to the state of a workspace.'
        )


class TooManyTags(APIException):
    meaning = "A workspace would have more than 50 tags."
    status_code = 422
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TOO_MANY_TAGS"
    default_detail = "A workspace has at most 50 tags. Send fewer tags."


class WorkspaceNotEmpty(APIException):
    meaning = "The workspace has a state with resources, or a state that the service cannot read."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "WORKSPACE_NOT_EMPTY"
    default_detail = (
        "The state of the workspace has resources, or cannot be read. Destroy the resources first, "
        "or delete the state in the admin."
    )


class InvalidDocument(APIException):
    meaning = (
        "The document is not a JSON object, has an invalid serial or lineage, or is not "
        "a state and would replace a state."
    )
    status_code = 400
    default_code = "INVALID_DOCUMENT"


class InvalidLockInfo(APIException):
    meaning = "The body of a LOCK or UNLOCK request is not valid LockInfo."
    status_code = 400
    default_code = "INVALID_LOCK_INFO"


class ContentMd5Mismatch(APIException):
    meaning = "The MD5 digest of the received body differs from the digest that the client sent."
    status_code = 400
    default_code = "CONTENT_MD5_MISMATCH"
    default_detail = (
        "The MD5 digest of the received body differs from the digest that the client sent. Send "
        "the request again."
    )


class StateLocked(APIException):
    meaning = (
        "Another lock is active. The response contains its LockInfo, in the format that "
        "Terraform expects."
    )
    status_code = 423
    default_code = "STATE_LOCKED"
    advice = (
        "Wait until the lock is released. If its owner has stopped, release it with terraform "
        "force-unlock and a token with state:write and state:admin."
    )

    def __init__(self, holder: Mapping[str, str]) -> None:
        who, operation = holder["Who"] or "an unknown client", holder["Operation"]
        super().__init__(f"The state is locked by {who} ({operation}).")
        self.top_level = holder


class StateFrozen(APIException):
    meaning = (
        "An operator froze the state, so it cannot be changed. The response contains LockInfo, in "
        "the format that Terraform expects. The `ID` in the LockInfo is a sentence that names the "
        "operator and the reason."
    )
    status_code = 423
    default_code = "STATE_FROZEN"
    advice = "Wait until an operator unfreezes the state. A force-unlock does not unfreeze it."

    def __init__(self, freeze: Mapping[str, str], state_id: uuid.UUID) -> None:
        super().__init__(f"The state is {freeze['ID']}.")
        self.top_level = freeze
        self.metadata = {"state_id": str(state_id)}


class LockNotHeld(APIException):
    meaning = "The given lock ID is not the ID of the active lock."
    status_code = 409
    default_code = "LOCK_NOT_HELD"
    default_detail = (
        "The given lock ID is not the ID of the active lock. Fetch the state and its lock again."
    )


class LockRequired(APIException):
    meaning = "The environment requires a lock for each push, and the push has no lock ID."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "LOCK_REQUIRED"
    default_detail = (
        "The environment requires a lock for each push, and the push has no lock ID: "
        "lock_address is missing in the backend block, or -lock=false was given. Set "
        "lock_address and unlock_address to the same URL as address."
    )


class SerialConflict(APIException):
    meaning = (
        "A push without a lock, or a new version of a workspace, must increase the serial, unless "
        "it is forced."
    )
    status_code = 409
    default_code = "SERIAL_CONFLICT"
    advice = "Fetch the current document and base the push on it, or force the push."

    def __init__(self, pushed: int, current: int) -> None:
        super().__init__(f"The serial must be greater than {current}, but is {pushed}.")
        self.metadata = {"serial": str(pushed), "current_serial": str(current)}


class LineageMismatch(APIException):
    meaning = (
        "A push without a lock, or a new version of a workspace, must keep the lineage, unless it "
        "is forced. A different lineage means a different state."
    )
    status_code = 409
    default_code = "LINEAGE_MISMATCH"
    advice = "Check the address. To replace the stored state by another state, force the push."

    def __init__(self, pushed: str, current: str) -> None:
        super().__init__("The document and the stored state have different lineages.")
        self.metadata = {"lineage": pushed, "current_lineage": current}


class WriteConflict(APIException):
    meaning = "On each attempt, a concurrent writer changed the state first."
    status_code = 503
    default_code = "WRITE_CONFLICT"
    default_detail = "Too many concurrent writers. Send the request again."
    wait = 1


class DocumentUnreadable(APIException):
    """The base class of errors for stored documents that the service cannot read."""


class DocumentDamaged(DocumentUnreadable):
    meaning = "The stored bytes do not match their recorded digest."
    status_code = 500
    default_code = "DOCUMENT_DAMAGED"
    default_detail = (
        "The stored document is damaged. Restore it from a backup, or restore an earlier version."
    )


class DocumentKeyMissing(DocumentUnreadable):
    meaning = "The key that encrypts the document is not in STATE_ENCRYPTION_KEYS."
    status_code = 500
    default_code = "DOCUMENT_KEY_MISSING"
    default_detail = "The encryption key of the stored document is not configured."
    advice = "Ask an operator to add the key to STATE_ENCRYPTION_KEYS."


class DocumentMissing(DocumentUnreadable):
    meaning = (
        "The object store responds, but does not contain the object. The object is delayed or lost."
    )
    status_code = 503
    default_code = "DOCUMENT_MISSING"
    default_detail = "The object that contains the document is missing."
    advice = "Try again. If it stays missing, ask an operator to restore it from a backup."
    wait = 5


class StorageInconsistent(DocumentUnreadable):
    meaning = (
        "The object store returned bytes that do not match its own checksum, or different bytes "
        "on each attempt."
    )
    status_code = 503
    default_code = "STORAGE_INCONSISTENT"
    default_detail = (
        "The object store returns bytes that do not match its own checksum, or other bytes each "
        "time."
    )
    advice = "Try again. If the error persists, ask an operator to check the store."
    wait = 5


class VersionNotFound(NotFound):
    meaning = "The state has no such version, or the version was pruned."
    default_code = "VERSION_NOT_FOUND"
    default_detail = "The state has no version with this number, or the version was pruned."
    advice = "GET /api/v1/states/{id}/versions lists the available versions."


class FactsNotFound(NotFound):
    meaning = "No pipeline has reported facts about this version."
    default_code = "FACTS_NOT_FOUND"
    default_detail = "No pipeline has reported facts about this version."
    advice = "A pipeline can report facts with PUT to this path after its apply."


class InvalidFile(APIException):
    meaning = (
        "A file that was sent with the facts does not have Terraform's format. The message "
        "contains the position."
    )
    status_code = 400
    default_code = "INVALID_FILE"

    def __init__(self, name: str, because: str, line: int | None = None) -> None:
        at = "" if line is None else f", line {line}"
        super().__init__(f"{name}{at}: {because}")
        self.metadata = {"file": name, **({} if line is None else {"line": str(line)})}


class StateEncrypted(APIException):
    meaning = "OpenTofu encrypted the document on the client, so the service cannot read it."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_ENCRYPTED"
    default_detail = (
        "OpenTofu encrypted the document. Only OpenTofu with the same encryption configuration can "
        "read it."
    )


class StateFormatUnsupported(APIException):
    meaning = (
        "The document does not have Terraform's state format 4. The service still stores and "
        "serves it."
    )
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_FORMAT_UNSUPPORTED"

    def __init__(self, problem: str, format_version: str = "4") -> None:
        super().__init__(f"The document does not have state format 4: {problem}.")
        self.metadata = {"format_version": format_version}


class StateTooComplex(APIException):
    meaning = "Analysing the document would take too much time or memory for its size."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "STATE_TOO_COMPLEX"
    default_detail = (
        "The document has too many small or deeply nested values to analyse. "
        "Download the whole document instead."
    )


class StorageUnavailable(APIException):
    meaning = "The object store did not respond, or refused the request. Nothing was changed."
    status_code = 503
    default_code = "STORAGE_UNAVAILABLE"
    default_detail = "The object store of the documents is unavailable. Try again."
    wait: int | None = 2


class StorageMisconfigured(StorageUnavailable):
    meaning = (
        "The object store has no bucket with the configured name, or rejects the service's "
        "credentials. An operator must change the configuration."
    )
    default_code = "STORAGE_MISCONFIGURED"
    default_detail = (
        "The object store rejects the service's requests, and retries do not help. Contact an "
        "operator."
    )
    wait = None
