"""OpenAPI schema of the state backend."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_view
from drf_spectacular.utils import extend_schema as operation

from infra_service.lib.api.bodies import BodyIncomplete, BodyTooLarge, RequestTimeout
from infra_service.lib.api.memory import MemoryInsufficient, MemoryUnavailable
from infra_service.lib.api.openapi_words import (
    EMPTY,
    NO_STORE,
    Named,
    answer_example,
    error_docs,
    request_example,
)
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.api.struct_schemas import schema_of
from states import slugs
from states.api import samples
from states.errors import (
    ContentMd5Mismatch,
    DocumentDamaged,
    DocumentKeyMissing,
    DocumentMissing,
    InvalidDocument,
    InvalidLockInfo,
    LineageMismatch,
    LockNotHeld,
    LockRequired,
    SerialConflict,
    StateEncrypted,
    StateFormatUnsupported,
    StateFrozen,
    StateLocked,
    StateNotFound,
    StateTooComplex,
    StorageInconsistent,
    StorageMisconfigured,
    StorageUnavailable,
    WriteConflict,
)
from states.lockinfo import LockInfo
from states.models import MAX_SERIAL

UNREADABLE: Final = (
    DocumentDamaged, DocumentKeyMissing, DocumentMissing, StorageInconsistent,
)  # fmt: skip
OF_STORE: Final = (StorageUnavailable, StorageMisconfigured)
_LOCK_INFO: Final = schema_of(LockInfo)
_FIELDS: Final[dict[str, Any]] = _LOCK_INFO["properties"]
LOCK_INFO: Final = Named("LockInfo", {**_LOCK_INFO, "required": list(_FIELDS)})
_LOCK_TIME: Final = Named(
    "LockTime",
    {
        "description": "A time, an empty string, or null.",
        "anyOf": [
            {"type": "string", "format": "date-time"},
            {"type": "string", "maxLength": 0},
            {"type": "null"},
        ],
    },
)
_NEW_FIELDS: Final = {
    **{name: {**field, "type": ["string", "null"]} for name, field in _FIELDS.items()},
    "ID": {
        "type": "string",
        "format": "uuid",
        "description": "A new UUID for LOCK, or the ID of the active lock for UNLOCK.",
    },
    "Created": {"allOf": [_LOCK_TIME], "description": _FIELDS["Created"]["description"]},
}
_NEW_LOCK_INFO: Final = Named("NewLockInfo", {**_LOCK_INFO, "properties": _NEW_FIELDS})
DOCUMENT: Final = Named(
    "StateDocument",
    {
        "type": "object",
        "description": "A complete state document, stored byte for byte. Without `serial`, the "
        "version gets the next serial. Without `lineage`, the state keeps its lineage.",
        "properties": {
            "serial": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": MAX_SERIAL,
                "description": "Terraform's counter. A push without a lock ID must increase it.",
            },
            "lineage": {
                "type": ["string", "null"],
                "maxLength": 255,
                "description": "Terraform's identifier of the state. A push without a lock ID must "
                "not change it.",
            },
        },
        "additionalProperties": True,
    },
)
LOCKED: Final = error_docs(StateLocked, StateFrozen, beside=LOCK_INFO)
FROZEN: Final = error_docs(StateFrozen, beside=LOCK_INFO)

_KEY: Final = [
    OpenApiParameter(name, OpenApiTypes.UUID, OpenApiParameter.PATH, description=description)
    for name, description in (
        ("component_id", "The infrastructure component."),
        ("environment_id", "The environment of the state."),
    )
]
_SLUG: Final = {"type": "string", "pattern": f"^{slugs.PATTERN}$", "maxLength": slugs.MOST}
_NAMES: Final = [
    OpenApiParameter(name, _SLUG, OpenApiParameter.PATH, description=description)
    for name, description in (
        ("application", "The slug of the component's application."),
        ("component", "The slug of the component. The first LOCK or push registers it."),
        ("environment", "The slug of the environment. The first LOCK or push registers it."),
    )
]


class AddressForm(NamedTuple):
    """A form of a backend's address: its parameters, and the suffix of its operation ids."""

    parameters: list[OpenApiParameter]
    suffix: str


BY_IDS: Final = AddressForm(_KEY, "")
BY_NAMES: Final = AddressForm(_NAMES[1:], "_at")
BY_NAMES_IN_APPLICATION: Final = AddressForm(_NAMES, "_in_application")

_OF_KEY: Final = (InvalidParameter, StateNotFound)
_OF_BODY: Final = (BodyIncomplete, BodyTooLarge, RequestTimeout)
OF_MEMORY: Final = (MemoryUnavailable, MemoryInsufficient)
_METHODS: Final = (
    "This path also accepts Terraform's LOCK and UNLOCK methods, which OpenAPI cannot express. "
    "POST and DELETE of `…/lock` do the same."
)

_READ: Final = (
    "Return the current document, exactly as it was pushed. The response is compressed with gzip "
    f"if the client accepts gzip.\n\n{_METHODS}"
)
_PUSH: Final = (
    "Store a new version of the state. The body is the complete document. While the state is "
    "locked, `ID` must be the ID of the lock, and any serial is accepted. Otherwise, the serial "
    "must be greater than the stored serial, and the lineage must be the same. A push of the "
    "current document returns 200 and creates no version. An environment with "
    "`require_lock` refuses a push without `ID`. If the request has `Content-MD5`, the service "
    f"compares it with the body. {_METHODS}"
)
_HIDE: Final = (
    "Delete the state. Its history is kept for the retention period, and a push in that period "
    f"restores it. A state without versions is removed immediately. {_METHODS}"
)
_LOCK: Final = (
    "Lock the state, like the LOCK method of the path without `/lock`. A repeated request with the "
    "same ID returns 200. A request with another ID returns 423 with the LockInfo of the current "
    "lock."
)
_UNLOCK: Final = (
    "Release the lock with the ID in the body, like the UNLOCK method of the path without `/lock`. "
    "An empty body releases any lock, and also requires `state:admin`. An unlocked state stays "
    "unchanged."
)
OUTPUTS: Final = (
    "Return a state document with the outputs of the current version and without resources, "
    "for `terraform_remote_state`. Sensitive outputs, and outputs that contain a "
    "sensitive value, are omitted unless the token also has `state:secrets`."
)


def state_schema(form: AddressForm) -> Any:
    return extend_schema_view(
        get=operation(
            operation_id=f"read_state_document{form.suffix}",
            description=_READ,
            parameters=[*form.parameters, NO_STORE],
            responses={
                200: OpenApiResponse(DOCUMENT, "The document."),
                **error_docs(*_OF_KEY, *UNREADABLE, *OF_STORE, *OF_MEMORY),
            },
            examples=[answer_example(samples.DOCUMENT)],
        ),
        post=operation(
            operation_id=f"push_state{form.suffix}",
            description=_PUSH,
            parameters=[
                *form.parameters,
                OpenApiParameter("ID", OpenApiTypes.UUID, description="The ID of the "
                    "current lock."),
                OpenApiParameter(
                    "force",
                    OpenApiTypes.BOOL,
                    description="If true, the push can replace a newer state, a state with "
                        "another lineage, and, with a document that is not a state, any state. "
                        "The rules for locks stay. Also requires `state:admin`.",
                ),
            ],
            request={"application/json": DOCUMENT},
            responses={
                200: EMPTY,
                **error_docs(
                    *_OF_KEY, *_OF_BODY, *OF_MEMORY, InvalidDocument, ContentMd5Mismatch,
                    SerialConflict, LineageMismatch, LockNotHeld, LockRequired, WriteConflict,
                    *OF_STORE,
                ),
                **LOCKED,
            },
            examples=[request_example(samples.DOCUMENT)],
        ),
        delete=operation(
            operation_id=f"delete_state{form.suffix}",
            description=_HIDE,
            parameters=form.parameters,
            responses={200: EMPTY, **error_docs(*_OF_KEY, WriteConflict), **LOCKED},
        ),
    )  # fmt: skip


def lock_schema(form: AddressForm) -> Any:
    return extend_schema_view(
        post=operation(
            operation_id=f"lock_state{form.suffix}",
            description=_LOCK,
            parameters=form.parameters,
            request={"application/json": _NEW_LOCK_INFO},
            responses={
                200: OpenApiResponse(LOCK_INFO, "Locked."),
                **error_docs(*_OF_KEY, *_OF_BODY, InvalidLockInfo, WriteConflict),
                **LOCKED,
            },
            examples=[request_example(samples.LOCK_INFO), answer_example(samples.LOCK_INFO)],
        ),
        delete=operation(
            operation_id=f"unlock_state{form.suffix}",
            description=_UNLOCK,
            parameters=form.parameters,
            request={"application/json": _NEW_LOCK_INFO},
            responses={
                200: EMPTY,
                **error_docs(*_OF_KEY, *_OF_BODY, InvalidLockInfo, LockNotHeld, WriteConflict),
                **FROZEN,
            },
            examples=[request_example(samples.LOCK_INFO)],
        ),
    )


def outputs_document_schema(form: AddressForm) -> Any:
    return extend_schema_view(
        get=operation(
            operation_id=f"read_state_outputs{form.suffix}",
            description=OUTPUTS,
            parameters=[*form.parameters, NO_STORE],
            responses={
                200: OpenApiResponse(DOCUMENT, "A state with outputs only."),
                **error_docs(
                    *_OF_KEY, *UNREADABLE, *OF_STORE, *OF_MEMORY, StateEncrypted,
                    StateFormatUnsupported, StateTooComplex,
                ),
            },
            examples=[answer_example(samples.DOCUMENT)],
        ),
    )  # fmt: skip
