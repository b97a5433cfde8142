"""What users and groups are given, as boxes that a keyboard can tick."""

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
    """Refuses a number that SQLite cannot hold, as any other that is nothing's."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError as error:
            raise forms.ValidationError("Choose of what is offered.") from error


class _ByModel(ModelChoiceIterator):  # type: ignore[type-arg,unused-ignore]  # it takes none at run time
    """Permissions in groups, one for each model."""

    def __iter__(self) -> Iterator[Any]:
        permissions = self.queryset.select_related("content_type").order_by(
            "content_type__app_label", "content_type__model", "codename"
        )
        for model, group in groupby(permissions, key=lambda permission: permission.content_type):
            yield capfirst(model.name), [self.choice(permission) for permission in group]


class PermissionChoices(ChoicesOfNumbers):
    iterator = _ByModel

    def label_from_instance(self, obj: Any) -> str:
        """Return what it allows; the group says of which model, as Django's own names do again."""
        verb, _, model = obj.codename.partition("_")
        is_of_django = model == obj.content_type.model and verb in _VERBS
        return verb.capitalize() if is_of_django else str(obj.name)


class CheckboxesByGroup(forms.CheckboxSelectMultiple):
    """A box for each choice, and a legend for each group of them."""

    template_name = "admin_base/checkboxes_by_group.html"
