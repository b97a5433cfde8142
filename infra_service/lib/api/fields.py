"""Serializer fields that only accept the documented types, without DRF's conversions."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rest_framework import fields, serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.api.suggestions import did_you_mean
from infra_service.lib.display_names import validate_display_name

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable

S = TypeVar("S", bound=serializers.Serializer[Any])

_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_SECONDS: Final = re.compile(r"(\d{1,9}(\.\d{1,9})?)s", re.ASCII)
# The maximum number of unknown fields in an error.
_LISTED: Final = 10


def described(text: str) -> Callable[[type[S]], type[S]]:
    """Return a decorator that describes a serializer in the OpenAPI document.

    The text is stored on the class, because commands load serializers without the OpenAPI library.
    """

    def describe(serializer: type[S]) -> type[S]:
        serializer.described = text  # type: ignore[attr-defined]
        return serializer

    return describe


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that rejects unknown fields and ignores read-only fields."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields. Raise errors for invalid and for unknown fields."""
        unknown: dict[str, Any] = {}
        if isinstance(data, dict):
            names = [name for name in data if name not in self.fields][:_LISTED]
            unknown = {name: [_unknown_field(name, self.fields)] for name in names}
        try:
            validated = super().to_internal_value(data)
        except ValidationError as error:
            if not unknown:
                raise
            detail: Any = error.detail
            raise ValidationError({**detail, **unknown}) from error
        if unknown:
            raise ValidationError(unknown)
        return validated


class NothingSerializer(StrictSerializer):
    """A serializer of the empty body of a method without options."""


def _unknown_field(name: str, known: Iterable[str]) -> ErrorDetail:
    return ErrorDetail(f"Unknown field{did_you_mean(name, known)}", code="unknown_field")


class KnownListField(serializers.ListField):
    """A field for a list in stored JSON, which is returned unchanged, or omitted if unknown."""


class PresentSerializer(serializers.Serializer[Any]):
    """An object made of columns of its parent, omitted while ``present_with`` is null."""

    present_with: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, source="*", read_only=True, **kwargs)

    def get_attribute(self, instance: Any) -> Any:
        """Return the parent, or omit this field."""
        if fields.get_attribute(instance, [self.present_with]) is None:
            raise fields.SkipField
        return instance


class TextField(serializers.CharField):
    """A string. Numbers and booleans are rejected."""

    #: The pattern in the OpenAPI document. Validation ignores surrounding space.
    pattern: ClassVar[str] = r"\S"

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class NameField(TextField):
    """A display name: 1 to 200 characters, all of them visible."""

    default_validators = [validate_display_name]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=200, **kwargs)


class IdField(serializers.UUIDField):
    """A UUID as text in its canonical form. Numbers and booleans are rejected."""

    def to_internal_value(self, data: Any) -> uuid.UUID:
        found = parse_uuid(data) if isinstance(data, str) else None
        if found is None:
            self.fail("invalid", value=data)
        return found


def _is_whole(data: Any) -> bool:
    """Return whether a value is an integer in JSON Schema, such as 60 or 60.0, but not true."""
    return isinstance(data, int | float) and not isinstance(data, bool) and data % 1 == 0


class FlagField(serializers.BooleanField):
    """A JSON boolean. Strings and numbers are rejected."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class WholeField(serializers.IntegerField):
    """A JSON integer. Strings are rejected."""

    def to_internal_value(self, data: Any) -> int:
        if not _is_whole(data):
            self.fail("invalid")
        return int(data)


class TimestampField(serializers.DateTimeField):
    """An RFC 3339 timestamp. The offset is required, because a default would be ambiguous."""

    default_error_messages = {
        "invalid": "Not an RFC 3339 timestamp with an offset, such as '2026-01-31T12:00:00Z'.",
        "past": "Choose a time in the future.",
    }

    def __init__(self, *, in_future: bool = False, **kwargs: Any) -> None:
        self.in_future = in_future
        super().__init__(**kwargs)

    def to_internal_value(self, value: Any) -> dt.datetime:
        if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
            self.fail("invalid")
        try:
            moment = dt.datetime.fromisoformat(value.upper()).astimezone(dt.UTC)
        except (ValueError, OverflowError):  # valid format, but an invalid day or year
            self.fail("invalid")
        if self.in_future and moment <= dt.datetime.now(dt.UTC):
            self.fail("past")
        return moment


class SecondsField(serializers.Field[dt.timedelta, Any, str, Any]):
    """A duration in seconds: an integer, or text such as ``"3600s"`` (google.protobuf.Duration)."""

    default_error_messages = {
        "invalid": "Not a duration, such as '3600s' or 3600.",
        "range": "Choose {minimum} to {maximum} seconds.",
    }

    def __init__(self, *, minimum: dt.timedelta, maximum: dt.timedelta, **kwargs: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dt.timedelta:
        if isinstance(data, str) and (match := _SECONDS.fullmatch(data)):
            seconds = float(match[1])
        elif _is_whole(data):
            seconds = data
        else:
            self.fail("invalid")
        low, high = self.minimum.total_seconds(), self.maximum.total_seconds()
        if not low <= seconds <= high:
            self.fail("range", minimum=int(low), maximum=int(high))
        return dt.timedelta(seconds=seconds)


class WordField(serializers.ChoiceField):
    """A word from a fixed set. ``code`` is the machine-readable reason for a rejection."""

    def __init__(self, choices: Any, *, code: str = "unknown_value", **kwargs: Any) -> None:
        self.code = code
        super().__init__(choices, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and data in self.choices:
            return data
        known = [str(choice) for choice in self.choices]
        guess = did_you_mean(data, known) if isinstance(data, str) else ""
        raise ValidationError(f"Not one of {', '.join(known)}{guess}", code=self.code)


class WordsField(serializers.ListField):
    """A list of words from a fixed set. A list ten times longer than the set is rejected."""

    def __init__(self, words: Any, *, code: str, **kwargs: Any) -> None:
        self.most = 10 * len(words)
        super().__init__(child=WordField(words, code=code), **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        if isinstance(data, list) and len(data) > self.most:
            raise ValidationError(f"More than {self.most} items.", code="max_length")
        return list(dict.fromkeys(super().to_internal_value(data)))
