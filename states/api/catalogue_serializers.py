"""Serializers of applications, components and environments."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from infra_service.lib.api.fields import (
    FlagField,
    IdField,
    NameField,
    StrictSerializer,
    TextField,
    TimestampField,
    described,
)
from states import slugs
from states.models import Application

_ID: Final = (
    "The id of the entry, which never changes. Ids that the service assigns sort in the order of "
    "creation. A push by ids can register any UUID."
)
_NAME: Final = (
    "The display name, which need not be unique. Empty if a push registered the entry by its id."
)
_CREATED: Final = "Time of creation, or of registration by the first push or LOCK."
_UPDATED: Final = "Time of the last change to the entry. Changes to its states do not count."


class SlugField(TextField):
    """The slug of an application, a component or an environment."""

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
    """A flag that permits a suffix in the derived slug of a new entry."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            write_only=True,
            default=False,
            help_text="If true, a POST without a slug appends a suffix to the derived slug when "
            "another entry has or had that slug, instead of returning `ALREADY_EXISTS`.",
            **kwargs,
        )


@described("A group of components.")
class ApplicationSerializer(StrictSerializer):
    id = serializers.UUIDField(read_only=True, help_text=_ID)
    name = NameField(help_text=_NAME)
    slug = SlugField(kind="application")
    slug_suffix = SlugSuffixField()
    created_at = TimestampField(read_only=True, help_text=_CREATED)
    updated_at = TimestampField(read_only=True, help_text=_UPDATED)


@described("A deployment target of components. It has no name if a push registered it by its id.")
class EnvironmentSerializer(ApplicationSerializer):
    slug = SlugField(kind="environment")
    require_lock = FlagField(default=False, help_text="Whether each push requires a lock ID.")


@described("A deployable unit of infrastructure. It has no name if a push registered it by its id.")
class ComponentSerializer(StrictSerializer):
    id = serializers.UUIDField(read_only=True, help_text=_ID)
    name = NameField(help_text=_NAME)
    slug = SlugField(kind="component")
    slug_suffix = SlugSuffixField()
    application_id = IdField(
        required=False,
        allow_null=True,
        help_text="The application of the component, or null. Moving a component also moves its "
        "states.",
    )
    created_at = TimestampField(read_only=True, help_text=_CREATED)
    updated_at = TimestampField(read_only=True, help_text=_UPDATED)

    def validate_application_id(self, value: Any) -> Any:
        """Reject an application outside the caller's binding."""
        applications = Application.objects.inside(self.context["request"].auth.binding)
        if value is not None and not applications.filter(pk=value).exists():
            raise ValidationError([ErrorDetail("No such application.", "unknown_application")])
        return value
