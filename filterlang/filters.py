"""Filters for types that django-filter lacks."""

import functools
from typing import TYPE_CHECKING, Any, Final, cast

from django import forms
from django_filters import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class NullableField(forms.Field):
    """A form field that declares whether an expression may be null, as model fields do."""

    def __init__(self, *, nullable: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nullable = nullable


class EnumField(NullableField, forms.ChoiceField):
    """A choice, with or without the prefix of its type."""

    def __init__(self, *, prefix: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.prefix = prefix

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Return the choice for each accepted spelling, starting with the choices themselves."""
        choices = [str(choice) for choice, _ in cast("Iterable[tuple[Any, Any]]", self.choices)]
        names = {choice: choice for choice in choices}
        for choice in choices:
            short = choice.removeprefix(self.prefix)
            names.setdefault(short, choice)
            names.setdefault(f"{self.prefix}{short}", choice)
        return names

    def to_python(self, value: Any) -> Any:
        """Return the choice for the value, or the unknown value, which ``validate`` rejects."""
        return super().to_python(self.names.get(value, value))


class EnumFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter for fixed words: ``EnumFilter(choices=Health.choices, prefix="HEALTH_")``."""

    field_class = EnumField


class IdentifierField(NullableField, forms.CharField):
    """Text that is only compared as a whole."""


class IdentifierFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter for a column of identifiers, which is indexed only for exact matches."""

    field_class = IdentifierField


class Int64Field(forms.IntegerField):
    """An integer within int64, or within ``min_value`` and ``max_value``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": INT64_MIN, "max_value": INT64_MAX} | kwargs)


class IntegerFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter for a column of integers. django-filter's ``NumberFilter`` is for decimals."""

    field_class = Int64Field


class LabelsField(forms.JSONField):
    """A JSON object of strings."""


class LabelsFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter for a ``JSONField`` that maps keys, which users choose, to strings."""

    field_class = LabelsField


class VersionsField(forms.CharField):
    """Versions of objects that users name."""


class VersionsFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter for the version of a named object, as in ``provider.hashicorp/aws.version``.

    No column stores the version. The view replaces each comparison, which is a
    ``VersionComparison`` at the path ``<field>__version`` (see ``filterlang.rewriting``).
    """

    field_class = VersionsField
