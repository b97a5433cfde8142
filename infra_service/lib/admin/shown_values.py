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
        for name, field in self.fields.items():
            is_shown = self.add_initial_prefix(name) in self.data
            field.show_hidden_initial = is_shown or not self.is_bound

    def clean(self) -> Any:
        """Validate changed names. An existing name does not prevent changes of other fields."""
        cleaned = super().clean()
        for name in _NAMES.intersection(self.cleaned_data, self.changed_data):
            try:
                validate_display_name(self.cleaned_data[name])
            except forms.ValidationError as error:
                self.add_error(name, error)
        return cleaned
