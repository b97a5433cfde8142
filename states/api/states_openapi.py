"""OpenAPI schema of states, their versions and contents."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_view
from drf_spectacular.utils import extend_schema as operation

from infra_service.lib.api.openapi_words import (
    NO_STORE,
    Named,
    Page,
    answer_example,
    error_docs,
    list_of,
    list_schema,
    needs,
    object_of,
    request_example,
    wrapped,
)
from infra_service.lib.api.parameters import InvalidParameter
from states.api import samples
from states.api.backend_openapi import (
    DOCUMENT,
    FROZEN,
    LOCKED,
    OF_MEMORY,
    OF_STORE,
    OUTPUTS,
    UNREADABLE,
)
from states.api.serializers import (
    ForceUnlockSerializer,
    FreezeOptionsSerializer,
    RestoreSerializer,
    StateSerializer,
    UnfreezeSerializer,
    VersionSerializer,
)
from states.document.marked_places import Reason
from states.errors import (
    InvalidDocument,
    LockNotHeld,
    SerialConflict,
    StateEncrypted,
    StateFormatUnsupported,
    StateNotFound,
    StateTooComplex,
    VersionNotFound,
    WriteConflict,
)

_STATE: Final = wrapped("StateAnswer", "state", StateSerializer)
_VERSION: Final = wrapped("VersionAnswer", "version", VersionSerializer)
A_STATE: Final = OpenApiParameter(
    "state_id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The id of the state."
)
_A_NUMBER: Final = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
A_VERSION: Final = OpenApiParameter(
    "number", _A_NUMBER, OpenApiParameter.PATH, description="The number of the version."
)
_AGAINST: Final = OpenApiParameter(
    "against",
    _A_NUMBER,
    description="The version to compare with; the default is the previous version.",
)
_OF_DOCUMENT: Final = (
    StateNotFound, VersionNotFound, *UNREADABLE, *OF_STORE, *OF_MEMORY,
)  # fmt: skip
_OF_CONTENTS: Final = (*_OF_DOCUMENT, StateEncrypted, StateFormatUnsupported, StateTooComplex)

_ANY: Final[dict[str, Any]] = {}
_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_FLAG: Final = {"type": "boolean"}

_REASONS: Final = {"type": "string", "enum": [reason.value for reason in Reason]}
_HIDDEN: Final = {
    "anyOf": [
        Named(
            "HiddenValue", object_of(reason=_REASONS, output=_TEXT_OR_NULL, attribute=_TEXT_OR_NULL)
        ),
        {"type": "null"},
    ]
}
_OUTPUT: Final = Named(
    "Output", object_of(name=_TEXT, value=_ANY, type=_ANY, sensitive=_FLAG, hidden=_HIDDEN)
)
_ADDRESS: Final = {
    "address": _TEXT,
    "deposed": _TEXT_OR_NULL,
    "module": _TEXT_OR_NULL,
    "mode": _TEXT,
    "type": _TEXT,
    "name": _TEXT,
    "index_key": {"type": ["string", "number", "null"]},
}
_RESOURCE: Final = Named(
    "Resource",
    object_of(
        **_ADDRESS,
        provider=_TEXT,
        status=_TEXT_OR_NULL,
        schema_version={"type": "integer"},
        create_before_destroy=_FLAG,
        dependencies=list_of(_TEXT),
        sensitive_attributes=list_of(_TEXT),
        attributes=_ANY,
        hidden=_HIDDEN,
    ),
)
_ACTION: Final = {"type": "string", "enum": ["ADDED", "CHANGED", "REMOVED"]}
_METADATA: Final = list_of(Named("MetadataChange", object_of(field=_TEXT, before=_ANY, after=_ANY)))
_CHANGED: Final = {
    "action": _ACTION,
    "attributes": list_of(
        Named(
            "AttributeChange",
            object_of(path=_TEXT, action=_ACTION, before=_ANY, after=_ANY, sensitive=_FLAG),
        )
    ),
    "metadata": _METADATA,
}
_CHECK: Final = Named(
    "CheckResultChange",
    object_of(
        object=_TEXT,
        object_kind=_TEXT,
        action=_ACTION,
        before=_TEXT_OR_NULL,
        after=_TEXT_OR_NULL,
        failure_messages=Named(
            "FailureMessages", object_of(before=list_of(_TEXT), after=list_of(_TEXT))
        ),
    ),
)
_COUNTS: Final = Named(
    "ChangeCounts", object_of(**dict.fromkeys(("added", "changed", "removed"), _COUNT))
)
_SIDE: Final = Named(
    "ComparedVersion",
    object_of(
        number=_COUNT,
        serial={"type": "integer"},
        lineage=_TEXT_OR_NULL,
        md5=_TEXT,
        size_bytes=_COUNT,
        created_at={"type": "string", "format": "date-time"},
        created_by=_TEXT,
        token_id=_TEXT,
        terraform_version=_TEXT_OR_NULL,
    ),
)
_DIFFERENCE: Final = Page(
    "DifferencePage",
    diff=Named(
        "Difference",
        object_of(
            before={"anyOf": [_SIDE, {"type": "null"}]},
            after=_SIDE,
            summary=Named(
                "DifferenceSummary",
                object_of(**dict.fromkeys(("outputs", "resources", "check_results"), _COUNTS)),
            ),
            metadata=_METADATA,
            outputs=list_of(Named("OutputChange", object_of(name=_TEXT, **_CHANGED))),
            resources=list_of(Named("ResourceChange", object_of(**_ADDRESS, **_CHANGED))),
            check_results=list_of(_CHECK),
        ),
    ),
)


def _contents(name: str, item: Named, example: Any) -> Any:
    page = Page(f"{item.name}Page", **{name: list_of(item)}, version_number=_COUNT)
    return operation(
        operation_id=f"list_state_{name}",
        parameters=[A_STATE, NO_STORE],
        responses={200: page, **error_docs(*_OF_CONTENTS)},
        examples=[answer_example(example)],
        filters=False,
    )


states_schema = extend_schema_view(
    list=list_schema(
        "state",
        "Existing (not deleted) states within the caller's binding.",
        samples.STATE,
    ),
    retrieve=operation(
        operation_id="get_state",
        responses=_STATE,
        examples=[answer_example({"state": samples.STATE})],
    ),
    destroy=operation(
        operation_id="delete_state_record",
        responses={
            204: OpenApiResponse(None, "Deleted."),
            **error_docs(WriteConflict),
            **LOCKED,
        },
    ),
    force_unlock=operation(
        operation_id="force_unlock_state",
        request=ForceUnlockSerializer,
        responses={200: _STATE, **error_docs(LockNotHeld, WriteConflict), **FROZEN},
        examples=[
            request_example({"reason": "the laptop is lost", "lock_id": samples.LOCK_INFO["ID"]}),
            answer_example({"state": samples.UNLOCKED_STATE}),
        ],
    ),
    freeze=operation(
        operation_id="freeze_state",
        request=FreezeOptionsSerializer,
        responses={200: _STATE, **error_docs(WriteConflict)},
        examples=[
            request_example(samples.FREEZE),
            answer_example({"state": samples.FROZEN_STATE}),
        ],
    ),
    unfreeze=operation(
        operation_id="unfreeze_state",
        request=UnfreezeSerializer,
        responses={200: _STATE, **error_docs(WriteConflict)},
        examples=[
            request_example({"reason": "the upgrade is done"}),
            answer_example({"state": samples.UNLOCKED_STATE}),
        ],
    ),
    undelete=operation(
        operation_id="undelete_state",
        request=None,
        responses={200: _STATE, **error_docs(WriteConflict), **LOCKED},
        examples=[answer_example({"state": samples.UNLOCKED_STATE})],
    ),
)

versions_schema = extend_schema_view(
    list=list_schema(
        "version",
        "The versions of a state, newest first.",
        samples.VERSION,
        operation_id="list_state_versions",
        parameters=[A_STATE],
        responses={200: VersionSerializer(many=True), **error_docs(StateNotFound)},
    ),
    retrieve=operation(
        operation_id="get_state_version",
        parameters=[A_STATE, A_VERSION],
        responses={200: _VERSION, **error_docs(StateNotFound, VersionNotFound)},
        examples=[answer_example({"version": samples.VERSION})],
    ),
    document=operation(
        operation_id="get_state_version_document",
        # The method demands the second scope, because nothing in the document is hidden.
        auth=needs("state:read", "state:secrets", of="accessToken"),
        parameters=[A_STATE, A_VERSION, NO_STORE],
        responses={200: OpenApiResponse(DOCUMENT, "The document."), **error_docs(*_OF_DOCUMENT)},
        examples=[answer_example(samples.DOCUMENT)],
    ),
    diff=operation(
        operation_id="diff_state_versions",
        parameters=[A_STATE, A_VERSION, _AGAINST, NO_STORE],
        responses={200: _DIFFERENCE, **error_docs(InvalidParameter, *_OF_CONTENTS)},
        examples=[answer_example(samples.DIFFERENCE)],
    ),
    restore=operation(
        operation_id="restore_state_version",
        parameters=[A_STATE, A_VERSION],
        request=RestoreSerializer,
        responses={
            200: _VERSION,
            **error_docs(
                *_OF_CONTENTS, InvalidDocument, LockNotHeld, SerialConflict, WriteConflict
            ),
            **LOCKED,
        },
        examples=[
            request_example({"reason": "the last apply was wrong"}),
            answer_example({"version": samples.RESTORED_VERSION}),
        ],
    ),
)

contents_schema = extend_schema_view(
    outputs=_contents("outputs", _OUTPUT, samples.OUTPUTS),
    resources=_contents("resources", _RESOURCE, samples.RESOURCES),
)

outputs_document_schema = extend_schema_view(
    outputs_document=operation(
        operation_id="get_state_outputs_document",
        description=OUTPUTS,
        parameters=[A_STATE, NO_STORE],
        responses={
            200: OpenApiResponse(DOCUMENT, "A state with outputs only."),
            **error_docs(*_OF_CONTENTS),
        },
        examples=[answer_example(samples.DOCUMENT)],
    ),
)
