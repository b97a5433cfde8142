"""Forms that compare their input with the values that the page showed."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from infra_service.lib.display_names import validate_display_name

_NAMES: Final = frozenset({"name", "display_name"})


class ShownValues(forms.BaseForm):
    """A mixin for forms whose ``changed_data`` contains only the fields that the person changed.

    The page contains the values that it shows as hidden inputs. Without them, saving a page that
    was opened before another person's change would undo this change. A field without a hidden input
    is compared with the stored value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shown = {name for name in self.fields if self.add_initial_prefix(name) in self.data}
        for name, field in self.fields.items():
            # A page shows a field without any choice as no hidden input at all.
            is_empty_choice = bool(shown) and isinstance(field, forms.ModelMultipleChoiceField)
            field.show_hidden_initial = name in shown or is_empty_choice or not self.is_bound

    def merged(self, name: str) -> list[Any]:
        """Return the stored choices of a field, with those that the person added or removed.

        The other choices on the page are ignored. Otherwise, adding a group on a page that was
        opened before another person removed a group would assign the removed group again.
        """
        stored, chosen = list(self.initial.get(name, ())), list(self.cleaned_data[name])
        if not self.fields[name].show_hidden_initial:
            return chosen
        hidden = forms.MultipleHiddenInput()
        shown = hidden.value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        kept = [one for one in stored if one in chosen or _text(one) not in shown]
        added = [one for one in chosen if one not in stored and _text(one) not in shown]
        return [*kept, *added]

    def clean(self) -> Any:
        """Validate changed names. An existing name does not prevent changes of other fields."""
        cleaned = super().clean()
        for name in _NAMES.intersection(self.cleaned_data, self.changed_data):
            try:
                validate_display_name(self.cleaned_data[name])
            except forms.ValidationError as error:
                self.add_error(name, error)
        return cleaned


def _text(choice: Any) -> str:
    """Return the value of a choice in the form: the key of an object, or the choice itself."""
    return str(getattr(choice, "pk", choice))
