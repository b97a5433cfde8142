"""Field types: the operators, and the format and conversion of the values.

The form field of the declared filter converts the values. A type adds stricter checks than a web
form.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, NamedTuple

from django import forms
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db.backends.base.operations import BaseDatabaseOperations

from filterlang.errors import Code, FilterError
from filterlang.filters import (
    EnumField,
    IdentifierField,
    Int64Field,
    LabelsField,
    VersionsField,
)
from filterlang.invisible import first_invisible
from filterlang.nodes import Value
from filterlang.spelling import closest
from filterlang.versions import sort_key

EQUALITY: Final = ("=", "!=", "IN", "NOT IN")
ORDER: Final = ("=", "!=", "<", "<=", ">", ">=", "BETWEEN", "IN", "NOT IN")
TEXT: Final = (*EQUALITY, "~=", "CONTAINS", "STARTS_WITH", "ENDS_WITH")
PRESENCE: Final = ("EXISTS", "IS NULL", "IS NOT NULL")


class Neighbours(NamedTuple):
    """The storable values nearest to a value that the column cannot store.

    None means that there is no such value.
    """

    below: Any
    above: Any


class FieldType:
    """A type, bound to the form field of a declared filter, and to its column if it has one."""

    name: ClassVar[str]
    form_field: ClassVar[type[forms.Field]]
    operators: ClassVar[tuple[str, ...]]
    pattern: ClassVar[re.Pattern[str]]
    expected: str
    #: Whether a dot and a key follow the field's name.
    has_keys: ClassVar[bool] = False

    def __init__(self, field: Any, column: Any = None) -> None:
        self.field = field
        self.column = column

    def key_of(self, text: str) -> str | None:
        """Return the key in the text after the dot, if there is a key."""
        return text if self.has_keys else None

    def written(self, name: str) -> str:
        """Return the field as the user writes it in a list of fields."""
        return name

    def convert(self, value: Value) -> Any:
        """Return the value for the database, or ``Neighbours`` if the column cannot store it.

        Raise ``FilterError`` with the position of a value that is not of the type.
        """
        try:
            if self._accepts(value):
                return self._clean(value.text)
        except (ValidationError, OverflowError):
            pass  # The format is valid, but the number, day or offset does not exist.
        invisible = first_invisible(value.text)
        suggestion = f"remove {invisible}" if invisible else self._suggest(value.text)
        raise FilterError(Code.TYPE, value.position, self.expected, suggestion)

    def _accepts(self, value: Value) -> bool:
        return self.pattern.fullmatch(value.text) is not None

    def _clean(self, text: str) -> Any:
        return self.field.clean(text)

    def _suggest(self, text: str) -> str:  # noqa: ARG002  # most types have nothing to guess
        return ""


class UUIDType(FieldType):
    """A UUID in the canonical form. ``uuid.UUID`` would also accept braces, URNs and any dashes."""

    name = "uuid"
    form_field = forms.UUIDField
    operators = EQUALITY
    pattern = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
    expected = "expected a UUID"


class EnumType(FieldType):
    """A declared choice, with or without the prefix of its type."""

    name = "enum"
    form_field = EnumField
    operators = EQUALITY

    def __init__(self, field: EnumField, column: Any = None) -> None:
        super().__init__(field, column)
        self.names = field.names
        self.choices = tuple(dict.fromkeys(self.names.values()))
        self.expected = f"expected one of {', '.join(self.choices)}"

    def _accepts(self, value: Value) -> bool:
        return value.text in self.names

    def _suggest(self, text: str) -> str:
        guess = closest(text, self.names)
        return f"did you mean '{guess}'?" if guess else ""


class BooleanType(FieldType):
    """``true`` or ``false``, in upper or lower case."""

    name = "boolean"
    form_field = forms.NullBooleanField
    operators = ("=", "!=")
    pattern = re.compile(r"true|false", re.IGNORECASE | re.ASCII)
    expected = "expected true or false"

    def _clean(self, text: str) -> Any:
        return super()._clean(text.lower())


class IntegerType(FieldType):
    """An integer within the bounds of the form field.

    The column may be narrower. Without a check, PostgreSQL would then receive only the lower 32
    bits of the number.
    """

    name = "integer"
    form_field = Int64Field
    operators = ORDER
    pattern = re.compile(r"-?[0-9]+")

    def __init__(self, field: Int64Field, column: Any = None) -> None:
        super().__init__(field, column)
        self.expected = f"expected an integer from {field.min_value} to {field.max_value}"
        bounds = BaseDatabaseOperations.integer_field_ranges
        stored = column.get_internal_type() if column is not None else "BigIntegerField"
        self.lowest, self.highest = bounds[stored]

    def _clean(self, text: str) -> Any:
        value: int = super()._clean(text)
        if value < self.lowest:
            return Neighbours(None, self.lowest)
        return Neighbours(self.highest, None) if value > self.highest else value


class TimestampType(FieldType):
    """An RFC 3339 timestamp with an offset. A time without an offset would be ambiguous.

    Columns store microseconds, but a value may have more digits.
    """

    name = "timestamp"
    form_field = forms.DateTimeField
    operators = ORDER
    pattern = re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}([0-9]*))?(?:Z|[+-][0-9]{2}:[0-9]{2})",
        re.IGNORECASE | re.ASCII,
    )
    expected = "expected an RFC 3339 timestamp with an offset, such as '2026-01-31T12:00:00Z'"

    def _clean(self, text: str) -> Any:
        # Convert to UTC here, because SQLite's adapter also does, and year 1 at +01:00 overflows.
        value: datetime = super()._clean(text.upper()).astimezone(UTC)
        written = self.pattern.fullmatch(text)
        finer = written is not None and (written[1] or "").strip("0")
        if not finer:
            return value
        last = value == datetime.max.replace(tzinfo=UTC)
        return Neighbours(value, None if last else value + timedelta(microseconds=1))

    def _suggest(self, text: str) -> str:
        guesses = {
            f"{text}Z": "add the offset",
            f"{text}T00:00:00Z": "add the time and the offset",
            text.replace(" ", "T"): "write T before the time",
            text.replace(" ", "+"): "write + as %2B in an address",
        }
        for guess, advice in guesses.items():
            if guess != text and self.pattern.fullmatch(guess):
                return f"{advice}: '{guess}'"
        return ""


class StringType(FieldType):
    """Any text."""

    name = "string"
    form_field = forms.CharField
    operators: ClassVar[tuple[str, ...]] = TEXT
    expected = "expected a quoted value"

    def _accepts(self, value: Value) -> bool:
        return value.quoted

    def _clean(self, text: str) -> str:
        # The form field is not used, because it strips the space around the text.
        return text

    def _suggest(self, text: str) -> str:
        return f"quote the value: '{text}'"


class IdentifierType(StringType):
    """Any text, compared only as a whole."""

    name = "identifier"
    form_field = IdentifierField
    operators = EQUALITY


class LabelType(StringType):
    """The value for a key of a ``LabelsFilter``. The key may be absent."""

    name = "label"
    form_field = LabelsField
    operators = (*TEXT, *PRESENCE)
    has_keys = True

    def written(self, name: str) -> str:
        """Return the field with a placeholder for the key."""
        return f"{name}['<key>']"


class VersionType(FieldType):
    """A version, with the precedence of Semantic Versioning. ``5`` means ``5.0.0``."""

    name = "version"
    form_field = VersionsField
    operators = ("=", "!=", "<", "<=", ">", ">=", *PRESENCE)
    expected = "expected a version, such as '5' or '5.31.0-beta1'"
    has_keys = True

    def key_of(self, text: str) -> str | None:
        """Return the name of the versioned object."""
        name, dot, last = text.rpartition(".")
        return name if name and (dot, last) == (".", "version") else None

    def written(self, name: str) -> str:
        """Return the field with a placeholder for the name."""
        return f"{name}.<source>.version"

    def _accepts(self, value: Value) -> bool:
        return sort_key(value.text) is not None

    def _clean(self, text: str) -> Any:
        return sort_key(text)

    def _suggest(self, text: str) -> str:
        number = text[1:]
        return f"write '{number}'" if text[:1] in "vV" and sort_key(number) else ""


_TYPES: Final[dict[type, type[FieldType]]] = {
    kind.form_field: kind
    for kind in (
        UUIDType,
        EnumType,
        BooleanType,
        IntegerType,
        TimestampType,
        StringType,
        IdentifierType,
        LabelType,
        VersionType,
    )
}


def field_type(field: forms.Field, column: Any = None) -> FieldType:
    """Return the type for a filter's form field and column.

    Raise ``ImproperlyConfigured`` for a form field that has no type.
    """
    for base in type(field).__mro__:
        if base in _TYPES:
            return _TYPES[base](field, column)
    raise ImproperlyConfigured(f"the filter language has no type for {type(field).__name__}")
