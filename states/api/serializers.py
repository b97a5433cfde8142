from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers

from infra_service.lib.api.fields import (
    IdField,
    PresentSerializer,
    StrictSerializer,
    TextField,
    TimestampField,
    described,
)
from states.models.engines import Engine

_NAMED: Final = "The current name; empty until it is set."
SLUG: Final = "The slug in addresses; null until the name is set."
_SERIAL: Final = "Terraform's counter in the document"
_LINEAGE: Final = "Terraform's identifier of the state; null if the document has none."
_MD5: Final = "MD5 digest of the document, in hexadecimal"
_SIZE: Final = "Size of the uncompressed document"
_NONE: Final = "null before the first push"


class AddressesField(serializers.JSONField):
    """A list of addresses, returned as stored."""


@described("The lock as its owner described it; present while the state is locked.")
class LockSerializer(PresentSerializer):
    present_with = "lock_id"

    lock_id = serializers.UUIDField(
        read_only=True,
        help_text="The ID of the lock. A client of the http backend chooses it, and must send it "
        "with each push and with the unlock.",
    )
    operation = serializers.CharField(
        source="lock_info.Operation",
        read_only=True,
        help_text="The client's operation, such as `OperationTypeApply`; may be empty.",
    )
    who = serializers.CharField(
        source="lock_info.Who",
        read_only=True,
        help_text="User and machine as the client states them, such as `ada@laptop`.",
    )
    version = serializers.CharField(
        source="lock_info.Version",
        read_only=True,
        help_text="The version of the client, such as `1.11.4`; may be empty.",
    )
    door = serializers.CharField(
        source="lock_taken_by.door",
        read_only=True,
        allow_null=True,
        help_text="The backend through which the client acquired the lock, `http` or `remote`; "
        "null for a lock from an earlier release.",
    )
    acquired_at = TimestampField(
        source="lock_acquired_at",
        read_only=True,
        help_text="The time at which the client acquired the lock, by the service's clock.",
    )


@described("The freeze by an operator; present while the state is frozen.")
class FreezeSerializer(PresentSerializer):
    present_with = "frozen_at"

    frozen_at = TimestampField(read_only=True, help_text="The beginning of the freeze.")
    frozen_by = serializers.CharField(
        read_only=True, help_text="The user or service that froze the state."
    )
    reason = serializers.CharField(
        source="freeze_reason",
        read_only=True,
        help_text="The operator's reason, which Terraform shows to refused clients.",
    )
    expected_until = TimestampField(
        source="freeze_expected_until",
        read_only=True,
        allow_null=True,
        help_text="The expected end. The state stays frozen after this time, and the freeze "
        "counts as overdue.",
    )


@described("A state. Fields from the document are null before the first push.")
class StateSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(
        read_only=True, help_text="The id of the state, which never changes."
    )
    component_id = serializers.UUIDField(
        read_only=True, help_text="The component that the state belongs to."
    )
    component_name = serializers.CharField(read_only=True, help_text=_NAMED)
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    application_slug = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The slug of the component's application; null without an application.",
    )
    environment_id = serializers.UUIDField(
        read_only=True, help_text="The environment that the state belongs to."
    )
    environment_name = serializers.CharField(read_only=True, help_text=_NAMED)
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    serial = serializers.IntegerField(
        read_only=True, allow_null=True, help_text=f"{_SERIAL}; {_NONE}."
    )
    md5 = serializers.CharField(read_only=True, allow_null=True, help_text=f"{_MD5}; {_NONE}.")
    lineage = serializers.CharField(read_only=True, allow_null=True, help_text=_LINEAGE)
    size_bytes = serializers.IntegerField(
        read_only=True, allow_null=True, help_text=f"{_SIZE}; {_NONE}."
    )
    engine = serializers.ChoiceField(
        choices=Engine.choices,
        read_only=True,
        allow_null=True,
        help_text="The engine that wrote the current version; null until the version is indexed.",
    )
    client_encrypted = serializers.BooleanField(
        read_only=True,
        help_text="Whether OpenTofu encrypted the current version on the client. The service "
        "cannot read an encrypted version.",
    )
    failing_checks = AddressesField(
        read_only=True,
        allow_null=True,
        help_text="Addresses of the `check` blocks that fail in the current version; null if "
        "no check fails, or until the version is indexed.",
    )
    lock = LockSerializer(
        required=False, help_text="The current lock; absent while the state is unlocked."
    )
    frozen = FreezeSerializer(
        required=False, help_text="The current freeze; absent unless the state is frozen."
    )
    created_at = TimestampField(
        read_only=True,
        help_text="Time of the registration by the first push, lock or import, or as a workspace.",
    )
    updated_at = TimestampField(
        read_only=True, help_text="Time of the last push, restore, import or undeletion."
    )


@described("Metadata from the source of an imported version; absent in other versions.")
class ImportedSerializer(PresentSerializer):
    present_with = "imported_source"

    source = serializers.CharField(  # type: ignore[assignment]  # a field also has a source
        source="imported_source",
        read_only=True,
        help_text="The service or store from which the version was imported.",
    )
    created_at = TimestampField(
        source="imported_created_at",
        read_only=True,
        allow_null=True,
        help_text="Creation time in the source; null if unknown.",
    )
    created_by = serializers.CharField(
        source="imported_created_by",
        read_only=True,
        help_text="Author in the source; empty if unknown.",
    )


@described("A version of a state, without its document.")
class VersionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(
        read_only=True, help_text="The number of the version in its state, which is never reused."
    )
    serial = serializers.IntegerField(read_only=True, help_text=f"{_SERIAL}; can repeat.")
    lineage = serializers.CharField(read_only=True, allow_null=True, help_text=_LINEAGE)
    md5 = serializers.CharField(read_only=True, help_text=f"{_MD5}.")
    size_bytes = serializers.IntegerField(read_only=True, help_text=f"{_SIZE}.")
    created_at = TimestampField(read_only=True, help_text="Time of the push, restore or import.")
    created_by = serializers.CharField(
        read_only=True, help_text="The user or service that created the version."
    )
    token_id = serializers.CharField(
        read_only=True,
        help_text="The id of the token that created the version; empty for a command.",
    )
    imported = ImportedSerializer(required=False, help_text="Present only in imported versions.")


@described("Options for restoring a version.")
class RestoreSerializer(StrictSerializer):
    lock_id = IdField(
        required=False,
        allow_null=True,
        help_text="The ID of the current lock, if the state is locked.",
    )
    reason = TextField(
        required=False, max_length=1000, help_text="The reason, which the audit log records."
    )


@described("Options for a force-unlock.")
class ForceUnlockSerializer(StrictSerializer):
    reason = TextField(max_length=1000, help_text="The reason, which the audit log records.")
    lock_id = IdField(
        required=False,
        allow_null=True,
        help_text="The ID of the expected lock. The service releases no other lock.",
    )


@described("Options for a freeze.")
class FreezeOptionsSerializer(StrictSerializer):
    reason = TextField(
        max_length=1000, help_text="The reason, which Terraform shows when the service refuses it."
    )
    expected_until = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="The expected end, for information only. The state stays frozen until an "
        "operator unfreezes it.",
    )


@described("Options for unfreezing a state.")
class UnfreezeSerializer(StrictSerializer):
    reason = TextField(
        required=False, max_length=1000, help_text="The reason, which the audit log records."
    )
