from __future__ import annotations

import json
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from infra_service.lib.api.fields import (
    FlagField,
    IdField,
    PresentSerializer,
    StrictSerializer,
    TextField,
    TimestampField,
    described,
)
from states import slugs
from states.models import Application

#: Maximum characters of a search value.
MOST_OF_VALUE: Final = 10_000
_NAMED: Final = "The current name; empty until it is set."
_SLUG: Final = "The slug in addresses; null until the name is set."


@described("The lock as its owner described it; present while the state is locked.")
class LockSerializer(PresentSerializer):
    present_with = "lock_id"

    lock_id = serializers.UUIDField(read_only=True)
    operation = serializers.CharField(source="lock_info.Operation", read_only=True)
    who = serializers.CharField(source="lock_info.Who", read_only=True)
    version = serializers.CharField(source="lock_info.Version", read_only=True)
    acquired_at = TimestampField(source="lock_acquired_at", read_only=True)


@described("The freeze by an operator; present while the state is frozen.")
class FreezeSerializer(PresentSerializer):
    present_with = "frozen_at"

    frozen_at = TimestampField(read_only=True)
    frozen_by = serializers.CharField(read_only=True)
    reason = serializers.CharField(source="freeze_reason", read_only=True)
    expected_until = TimestampField(
        source="freeze_expected_until",
        read_only=True,
        allow_null=True,
        help_text="The expected end. The freeze stays after it, and counts as overdue.",
    )


@described("A state. Fields from the document are null before the first push.")
class StateSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(read_only=True)
    component_id = serializers.UUIDField(read_only=True)
    component_name = serializers.CharField(read_only=True, help_text=_NAMED)
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=_SLUG)
    application_slug = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="Application of the component; null without an application.",
    )
    environment_id = serializers.UUIDField(read_only=True)
    environment_name = serializers.CharField(read_only=True, help_text=_NAMED)
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=_SLUG)
    serial = serializers.IntegerField(read_only=True, allow_null=True)
    md5 = serializers.CharField(read_only=True, allow_null=True)
    lineage = serializers.CharField(read_only=True, allow_null=True)
    size_bytes = serializers.IntegerField(read_only=True, allow_null=True)
    lock = LockSerializer(required=False)
    frozen = FreezeSerializer(required=False)
    created_at = TimestampField(read_only=True)
    updated_at = TimestampField(read_only=True)


class SlugField(TextField):
    """A slug of a kind of entries."""

    pattern = f"^{slugs.PATTERN}$"
    default_error_messages = {"form": f"A slug must be {slugs.DESCRIPTION}."}

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        self.kind = kind
        super().__init__(
            required=False,
            allow_null=True,
            max_length=slugs.MOST,
            help_text="The slug in addresses. The default is derived from the name.",
            **kwargs,
        )

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not slugs.is_slug(text, self.kind):
            self.fail("form")
        return text


class SlugSuffixField(FlagField):
    """A flag that lets a new entry get a slug other than that made from its name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            write_only=True,
            default=False,
            help_text="For a POST without a slug: append a suffix to the slug if the name already "
            "exists, instead of returning ALREADY_EXISTS.",
            **kwargs,
        )


@described("A group of components.")
class ApplicationSerializer(StrictSerializer):
    id = serializers.UUIDField(read_only=True)
    name = TextField(max_length=200)
    slug = SlugField(kind="application")
    slug_suffix = SlugSuffixField()
    created_at = TimestampField(read_only=True)
    updated_at = TimestampField(read_only=True)


@described("A deployment target of components. It has no name if a push registered it by its id.")
class EnvironmentSerializer(ApplicationSerializer):
    slug = SlugField(kind="environment")
    require_lock = FlagField(default=False, help_text="Require the lock's ID for each push.")


@described("A piece of infrastructure. It has no name if a push registered it by its id.")
class ComponentSerializer(StrictSerializer):
    id = serializers.UUIDField(read_only=True)
    name = TextField(max_length=200)
    slug = SlugField(kind="component")
    slug_suffix = SlugSuffixField()
    application_id = IdField(
        required=False,
        allow_null=True,
        help_text="The application that it belongs to, or null. Its states move with it.",
    )
    created_at = TimestampField(read_only=True)
    updated_at = TimestampField(read_only=True)

    def validate_application_id(self, value: Any) -> Any:
        """Refuse an application that the caller does not see."""
        applications = Application.objects.inside(self.context["request"].auth.binding)
        if value is not None and not applications.filter(pk=value).exists():
            raise ValidationError([ErrorDetail("No such application.", "unknown_application")])
        return value


@described("Metadata from the source of an imported version; absent in other versions.")
class ImportedSerializer(PresentSerializer):
    present_with = "imported_source"

    source = serializers.CharField(  # type: ignore[assignment]  # a field has a source, too
        source="imported_source", read_only=True
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


@described("A version of a state. `token_id` is empty if a command made it.")
class VersionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(read_only=True)
    serial = serializers.IntegerField(read_only=True)
    lineage = serializers.CharField(read_only=True, allow_null=True)
    md5 = serializers.CharField(read_only=True)
    size_bytes = serializers.IntegerField(read_only=True)
    created_at = TimestampField(read_only=True)
    created_by = serializers.CharField(read_only=True)
    token_id = serializers.CharField(read_only=True)
    imported = ImportedSerializer(required=False)


@described("The options of restoring a version.")
class RestoreSerializer(StrictSerializer):
    lock_id = IdField(
        required=False,
        allow_null=True,
        help_text="The ID of the current lock, if the state is locked.",
    )
    reason = TextField(
        required=False, max_length=1000, help_text="The reason, which the audit log records."
    )


@described("Options of a force-unlock.")
class ForceUnlockSerializer(StrictSerializer):
    reason = TextField(max_length=1000, help_text="The reason, which the audit log records.")
    lock_id = IdField(
        required=False,
        allow_null=True,
        help_text="The expected lock. If another lock is active, it is not released.",
    )


@described("The options of a freeze.")
class FreezeOptionsSerializer(StrictSerializer):
    reason = TextField(
        max_length=1000, help_text="The reason, which Terraform shows to the clients it refuses."
    )
    expected_until = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="The expected end, as a notice. The state stays frozen until it is unfrozen.",
    )


@described("The options of unfreezing a state.")
class UnfreezeSerializer(StrictSerializer):
    reason = TextField(
        required=False, max_length=1000, help_text="The reason, which the audit log records."
    )


@described("A resource instance in the current version of a state, without any of its values.")
class ResourceEntrySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(read_only=True)
    state_id = serializers.UUIDField(read_only=True)
    component_id = serializers.UUIDField(read_only=True)
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=_SLUG)
    environment_id = serializers.UUIDField(read_only=True)
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=_SLUG)
    version_number = serializers.IntegerField(
        read_only=True, help_text="The version of the state that was indexed."
    )
    address = serializers.CharField(read_only=True)
    deposed = serializers.CharField(
        read_only=True, help_text="The key of a deposed object; empty for the current object."
    )
    module = serializers.CharField(read_only=True, help_text="Empty in the root module.")
    mode = serializers.CharField(read_only=True)
    type = serializers.CharField(read_only=True)
    name = serializers.CharField(read_only=True)
    index_key = serializers.JSONField(
        read_only=True, help_text="A number for count, a string for for_each, otherwise null."
    )
    provider = serializers.CharField(read_only=True)


class IdentifyingField(serializers.JSONField):
    """A string, or an identity: an object of strings, numbers, booleans and lists of these."""

    default_error_messages = {
        "form": "Neither a string nor an object of strings, numbers, booleans and lists of these.",
        "length": f"Over {MOST_OF_VALUE} characters.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not data or not (isinstance(data, str) or _is_identity(data)):
            self.fail("form")
        if len(json.dumps(data)) > MOST_OF_VALUE:
            self.fail("length")
        return data


def _is_identity(data: Any) -> bool:
    return isinstance(data, dict) and all(
        item is None or isinstance(item, str | int | float)
        for member in data.values()
        for item in (member if isinstance(member, list) else [member])
    )


@described("The cloud or Kubernetes object whose resource is searched.")
class FindSerializer(StrictSerializer):
    value = IdentifyingField(
        help_text="An id, ARN, self link or name; `namespace/name` or the uid of a Kubernetes "
        "object; or the object that Terraform calls an identity."
    )
