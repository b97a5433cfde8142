"""Keyboard-accessible checkboxes for groups and permissions."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils.text import capfirst

if TYPE_CHECKING:
    from collections.abc import Iterator

    ModelMultipleChoiceFieldOfOurs = forms.ModelMultipleChoiceField[Any]
else:
    ModelMultipleChoiceFieldOfOurs = forms.ModelMultipleChoiceField


_VERBS: Final = ("view", "add", "change", "delete")


class ChoicesOfNumbers(ModelMultipleChoiceFieldOfOurs):
    """A choice field that rejects ids beyond SQLite's integer range as unknown."""

    def _check_values(self, value: Any) -> Any:
        try:
            return super()._check_values(value)  # type: ignore[misc]  # Django's stubs lack it
        except OverflowError as error:
            raise forms.ValidationError("Select one of the available choices.") from error


class _ByModel(ModelChoiceIterator):  # type: ignore[type-arg,unused-ignore]  # it takes none at run time
    """Permissions, grouped by model."""

    def __iter__(self) -> Iterator[Any]:
        permissions = self.queryset.select_related("content_type").order_by(
            "content_type__app_label", "content_type__model", "codename"
        )
        for model, group in groupby(permissions, key=lambda permission: permission.content_type):
            yield capfirst(model.name), [self.choice(permission) for permission in group]


class PermissionChoices(ChoicesOfNumbers):
    iterator = _ByModel

    def label_from_instance(self, obj: Any) -> str:
        """Return the action of a permission. The legend of its group names the model."""
        verb, _, model = obj.codename.partition("_")
        is_of_django = model == obj.content_type.model and verb in _VERBS
        return verb.capitalize() if is_of_django else str(obj.name)


class CheckboxesByGroup(forms.CheckboxSelectMultiple):
    """A checkbox for each choice, and a legend for each group of choices."""

    template_name = "admin_base/checkboxes_by_group.html"
