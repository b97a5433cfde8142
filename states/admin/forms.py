from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils import timezone

from states.api.resource_serializers import MOST_OF_VALUE

if TYPE_CHECKING:
    import datetime as dt

#: The maximum number of a version.
LAST_NUMBER: Final = 2**31 - 1
_MOMENT: Final = "%Y-%m-%dT%H:%M"
_WHY: Final = "The audit log records the reason."


def _reason(*, required: bool, **attributes: Any) -> forms.CharField:
    area = forms.Textarea({"rows": 3, "cols": 60, **attributes})
    return forms.CharField(max_length=1000, required=required, widget=area, help_text=_WHY)


class ForceUnlockForm(forms.Form):
    """A form with the lock's owner and the reason."""

    holder = forms.CharField(
        label="Lock owner",
        required=False,
        disabled=True,
        widget=forms.Textarea({"rows": 4, "cols": 60}),
    )
    reason = _reason(required=True, autofocus=True)

    def clean(self) -> dict[str, Any]:
        """Remove the lock owner, which is only displayed."""
        return {name: value for name, value in self.cleaned_data.items() if name != "holder"}


class FreezeForm(forms.Form):
    """A form with the reason, which clients see, and the expected end of a freeze."""

    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea({"rows": 3, "cols": 60, "autofocus": True}),
        help_text="Terraform shows the reason and your name to each refused client.",
    )
    expected_until = forms.DateTimeField(
        label="Expected until",
        required=False,
        input_formats=[_MOMENT, f"{_MOMENT}:%S"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MOMENT),
        help_text="Optional, in UTC. The state stays frozen after this time, and the overview "
        "lists the freeze as overdue.",
    )

    def clean_expected_until(self) -> dt.datetime | None:
        """Reject a time in the past."""
        until: dt.datetime | None = self.cleaned_data["expected_until"]
        if until is not None and until <= timezone.now():
            raise forms.ValidationError("Choose a time in the future.")
        return until


class UnfreezeForm(forms.Form):
    reason = _reason(required=False)


class RestoreForm(forms.Form):
    """A form with the version to restore, and the reason."""

    number = forms.IntegerField(
        label="Version",
        min_value=1,
        max_value=LAST_NUMBER,
        widget=forms.NumberInput({"readonly": True}),
        help_text="Select another version in the list of versions.",
    )
    reason = _reason(required=False)


class DeleteForm(forms.Form):
    reason = _reason(required=True)


class CompareForm(forms.Form):
    """A form with two versions. ``start`` is the position of the first change to show."""

    before = forms.IntegerField(label="Compare version", min_value=1, max_value=LAST_NUMBER)
    after = forms.IntegerField(label="with version", min_value=1, max_value=LAST_NUMBER)
    start = forms.IntegerField(min_value=0, max_value=10**9, required=False)


class FindForm(forms.Form):
    """A form with an identifier of a resource.

    ``after`` and, in a search by address, ``address`` are the end of the previous page.
    """

    value = forms.CharField(
        max_length=MOST_OF_VALUE,
        widget=forms.TextInput({
            "class": "vTextField", "type": "search", "autocomplete": "off", "spellcheck": "false"
        }),
        help_text="The complete address, id, ARN, self link or name, or the uid or namespace/name "
            "of a Kubernetes object. Parts of names do not match.",
    )  # fmt: skip
    after = forms.UUIDField(required=False, widget=forms.HiddenInput)
    address = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
