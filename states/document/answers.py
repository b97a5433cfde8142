"""API structures for outputs, resources and changes of documents."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Self

from msgspec import Meta, Struct

from states.document.hidden import MASK
from states.document.marked_places import HiddenValue

_Hidden = Annotated[
    HiddenValue | None,
    Meta(description="The reason why a value is hidden; null if no value is hidden."),
]
_Status = Annotated[
    str | None, Meta(description="The status, such as `pass`, `fail`, `error` or `unknown`.")
]
_Messages = Annotated[list[str], Meta(description="The messages; hidden messages are masked.")]
_Count = Annotated[int, Meta(ge=0, description="The number of changes on all pages.")]


class ChangeAction(enum.StrEnum):
    """The kind of a change between two versions."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"

    @classmethod
    def of(cls, before: object, after: object, absent: object = None) -> Self:
        """Return the kind of a change, in which ``absent`` means no value."""
        if before is absent:
            return cls.ADDED
        return cls.REMOVED if after is absent else cls.CHANGED


class Output(Struct):
    """An output of the root module."""

    name: Annotated[str, Meta(description="The name in the configuration.")]
    value: Annotated[Any, Meta(description=f"The value; `{MASK}` in place of hidden parts.")]
    type: Annotated[
        Any,
        Meta(description=f'The type in the state, such as `"string"`; may be `{MASK}`.'),
    ]
    sensitive: Annotated[bool, Meta(description="Whether the output is marked as sensitive.")]
    hidden: _Hidden


class InstanceAddress(Struct):
    """The address of a resource instance, and its parts."""

    address: Annotated[
        str, Meta(description='The address in the state, such as `aws_s3_bucket.logs["eu"]`.')
    ]
    deposed: Annotated[
        str | None, Meta(description="The key of a deposed object; null for the current object.")
    ]
    module: Annotated[
        str | None,
        Meta(
            description="The module's address, such as `module.network`; null in the root module."
        ),
    ]
    mode: Annotated[str, Meta(description="`managed`, or `data` for a data source.")]
    type: Annotated[str, Meta(description="The resource type, such as `aws_s3_bucket`.")]
    name: Annotated[str, Meta(description="The name in the configuration.")]
    index_key: Annotated[
        str | float | None,
        Meta(description="A number for `count`, a string for `for_each`; otherwise null."),
    ]


class Resource(InstanceAddress):
    """A resource instance with its attributes."""

    provider: Annotated[
        str,
        Meta(
            description="The value in the state, such as "
            '`provider["registry.terraform.io/hashicorp/aws"]`.'
        ),
    ]
    status: Annotated[
        str | None,
        Meta(description="`tainted` if the next apply replaces the object; otherwise null."),
    ]
    schema_version: Annotated[
        int, Meta(description="The version of the provider's schema for the attributes.")
    ]
    create_before_destroy: Annotated[
        bool, Meta(description="Whether a replacement is created before the object is destroyed.")
    ]
    dependencies: Annotated[
        list[str], Meta(description="Addresses of the resources that the instance depends on.")
    ]
    sensitive_attributes: Annotated[
        list[str],
        Meta(description="Paths that the state marks as sensitive, such as `users[0].password`."),
    ]
    attributes: Annotated[
        Any, Meta(description=f"The attributes; `{MASK}` in place of hidden parts.")
    ]
    hidden: Annotated[
        HiddenValue | None,
        Meta(
            description="The reason why an unmarked value is hidden; null if no such value is "
            "hidden."
        ),
    ]


class ChangeCounts(Struct):
    """The numbers of added, changed and removed items of a kind."""

    added: _Count
    changed: _Count
    removed: _Count


class DifferenceSummary(Struct):
    """The numbers of changes of each kind."""

    outputs: Annotated[ChangeCounts, Meta(description="Changes to outputs.")]
    resources: Annotated[ChangeCounts, Meta(description="Changes to resource instances.")]
    check_results: Annotated[ChangeCounts, Meta(description="Changes to check results.")]


class MetadataChange(Struct):
    """A changed member of the document that is not an attribute or an output value."""

    field: Annotated[str, Meta(description="The name of the member, such as `status`.")]
    before: Annotated[Any, Meta(description="The value before the change; null if absent.")]
    after: Annotated[Any, Meta(description="The value after the change; null if absent.")]


class AttributeChange(Struct):
    """The innermost changed value of an attribute or output."""

    path: Annotated[str, Meta(description="The path to the value, such as `tags.team`.")]
    action: Annotated[ChangeAction, Meta(description="The type of change to the value.")]
    before: Annotated[
        Any, Meta(description=f"The value before the change; null if absent, `{MASK}` if hidden.")
    ]
    after: Annotated[
        Any, Meta(description=f"The value after the change; null if absent, `{MASK}` if hidden.")
    ]
    sensitive: Annotated[
        bool, Meta(description="Whether the value is marked as sensitive, or hidden.")
    ]


_Action = Annotated[ChangeAction, Meta(description="The type of change to the item as a whole.")]
_Attributes = Annotated[
    list[AttributeChange], Meta(description="The changed values; empty unless CHANGED.")
]
_Metadata = Annotated[
    list[MetadataChange], Meta(description="The other changed members; empty unless CHANGED.")
]


class OutputChange(Struct):
    """A changed output."""

    name: Annotated[str, Meta(description="The name of the output.")]
    action: _Action
    attributes: _Attributes
    metadata: _Metadata


class ResourceChange(InstanceAddress):
    """A changed resource instance."""

    action: _Action
    attributes: _Attributes
    metadata: _Metadata


class FailureMessages(Struct):
    """The failure messages of a check in both versions."""

    before: _Messages
    after: _Messages


class CheckResultChange(Struct):
    """A changed result of a check."""

    object: Annotated[str, Meta(description="The address of the check, such as `check.health`.")]
    object_kind: Annotated[
        str, Meta(description="The kind of object, such as `resource`, `output` or `check`.")
    ]
    action: _Action
    before: _Status
    after: _Status
    failure_messages: Annotated[
        FailureMessages, Meta(description="The failure messages in both versions.")
    ]
