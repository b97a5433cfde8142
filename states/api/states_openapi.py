"""OpenAPI schema of states, their versions and contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema_field,
    extend_schema_view,
)
from drf_spectacular.utils import extend_schema as operation
from rest_framework import serializers

from infra_service.lib.api.openapi_words import (
    NO_STORE,
    answer_example,
    error_docs,
    list_schema,
    needs,
    request_example,
    wrapped,
)
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.api.struct_schemas import page_of, schema_of
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
from states.api.difference_answers import DifferencePage
from states.api.serializers import (
    AddressesField,
    ForceUnlockSerializer,
    FreezeOptionsSerializer,
    RestoreSerializer,
    StateSerializer,
    UnfreezeSerializer,
    VersionSerializer,
)
from states.document import answers
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

if TYPE_CHECKING:
    from msgspec import Struct

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
_CURRENT: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "The version that all pages describe: the current version when the first page "
    "was read.",
}
_OF_DOCUMENT: Final = (
    StateNotFound, VersionNotFound, *UNREADABLE, *OF_STORE, *OF_MEMORY,
)  # fmt: skip
_OF_CONTENTS: Final = (*_OF_DOCUMENT, StateEncrypted, StateFormatUnsupported, StateTooComplex)


def _contents(name: str, item: type[Struct], example: Any) -> Any:
    page = page_of(item, name, version_number=_CURRENT)
    return operation(
        operation_id=f"list_state_{name}",
        parameters=[A_STATE, NO_STORE],
        responses={200: page, **error_docs(*_OF_CONTENTS)},
        examples=[answer_example(example)],
        filters=False,
    )


extend_schema_field(serializers.ListField(child=serializers.CharField()))(AddressesField)

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
        # The method requires the second scope, because nothing in the document is hidden.
        auth=needs("state:read", "state:secrets", of="accessToken"),
        parameters=[A_STATE, A_VERSION, NO_STORE],
        responses={200: OpenApiResponse(DOCUMENT, "The document."), **error_docs(*_OF_DOCUMENT)},
        examples=[answer_example(samples.DOCUMENT)],
    ),
    diff=operation(
        operation_id="diff_state_versions",
        parameters=[A_STATE, A_VERSION, _AGAINST, NO_STORE],
        responses={200: schema_of(DifferencePage), **error_docs(InvalidParameter, *_OF_CONTENTS)},
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
    outputs=_contents("outputs", answers.Output, samples.OUTPUTS),
    resources=_contents("resources", answers.Resource, samples.RESOURCES),
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
