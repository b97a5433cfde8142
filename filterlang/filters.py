"""Filters in addition to django-filter's own, for types without an exact match there."""

import functools
from typing import TYPE_CHECKING, Any, Final, cast

from django import forms
from django_filters import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class NullableField(forms.Field):
    """Whether an expression may be null; for a column, the column decides."""

    def __init__(self, *, nullable: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nullable = nullable


class EnumField(NullableField, forms.ChoiceField):
    """A choice, which may also be written with or without the prefix of its type."""

    def __init__(self, *, prefix: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.prefix = prefix

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Return each accepted spelling with its choice; the choices come first."""
        choices = [str(choice) for choice, _ in cast("Iterable[tuple[Any, Any]]", self.choices)]
        names = {choice: choice for choice in choices}
        for choice in choices:
            short = choice.removeprefix(self.prefix)
            names.setdefault(short, choice)
            names.setdefault(f"{self.prefix}{short}", choice)
        return names

    def to_python(self, value: Any) -> Any:
        """Return the choice for the value, or the value itself, which ``validate`` refuses."""
        return super().to_python(self.names.get(value, value))


class EnumFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A column of fixed words: ``EnumFilter(choices=Health.choices, prefix="HEALTH_")``."""

    field_class = EnumField


class IdentifierField(NullableField, forms.CharField):
    """Text that is only compared as a whole."""


class IdentifierFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A column of identifiers, indexed for exact matches only."""

    field_class = IdentifierField


class Int64Field(forms.IntegerField):
    """An integer within int64, or within ``min_value`` and ``max_value``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": INT64_MIN, "max_value": INT64_MAX} | kwargs)


class IntegerFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A column of integers. django-filter's ``NumberFilter`` is for decimals."""

    field_class = Int64Field


class LabelsField(forms.JSONField):
    """A JSON object of strings."""


class LabelsFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A ``JSONField`` that maps strings to strings; its keys are the user's."""

    field_class = LabelsField


class VersionsField(forms.CharField):
    """Versions of objects that users name."""


class VersionsFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """The version of an object that the user names, as in ``provider.hashicorp/aws.version``.

    No column stores it. A view replaces each comparison, a ``VersionComparison`` at the path
    ``<field>__version`` (``filterlang.rewriting``).
    """

    field_class = VersionsField
