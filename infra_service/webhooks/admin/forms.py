"""Forms that create and change webhooks, with the validation of the API."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms

from apikeys.admin.issuing import active_user
from infra_service.lib.admin.shown_values import ShownValues
from infra_service.webhooks.api.serializers import WebhookSerializer
from infra_service.webhooks.event_types import TYPES
from infra_service.webhooks.models import MAX_FILTER, MAX_URL, WebhookEndpoint

_MOMENT: Final = "%Y-%m-%dT%H:%M"


class WebhookChangeForm(ShownValues, forms.Form):
    """A form to change a webhook. It does not show the URL, which may contain a secret.

    ``cleaned_data`` contains only the fields that the person changed.
    """

    required_css_class = "required"
    is_change: ClassVar[bool] = True

    name = forms.CharField(max_length=200, help_text="A display name for the receiver.")
    url = forms.CharField(
        label="URL",
        max_length=MAX_URL,
        required=False,
        widget=forms.URLInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text="An https URL at a public address, or a URL within WEBHOOK_NETWORKS. Leave empty "
        "to keep the current URL.",
    )
    event_types = forms.MultipleChoiceField(
        label="Events",
        choices=[(name, f"{name} – {of.description}") for name, of in TYPES.items()],  # noqa: RUF001 - a dash
        widget=forms.CheckboxSelectMultiple,
    )
    filter = forms.CharField(
        max_length=MAX_FILTER,
        required=False,
        help_text="A filter by the location of events, such as field['environment'] = "
        "'production'. Leave empty for every location.",
    )
    format = forms.ChoiceField(
        choices=WebhookEndpoint.Format.choices, initial=WebhookEndpoint.Format.STANDARD
    )
    expires_at = forms.DateTimeField(
        label="Expires",
        required=False,
        input_formats=[_MOMENT, f"{_MOMENT}:%S"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MOMENT),
        help_text="In UTC. Leave empty for no expiry.",
    )

    def clean_event_types(self) -> list[str]:
        """Return the stored event types, with the changes of the person."""
        return self.merged("event_types")

    def clean(self) -> dict[str, Any]:
        """Return the fields for the actions, validated as in the API."""
        given = self.cleaned_data
        moment = given.get("expires_at")
        data = {name: given.get(name) for name in ("name", "event_types", "filter", "format")}
        data["expires_at"] = None if moment is None else moment.isoformat()
        if given.get("url"):
            data["url"] = given["url"]
        if self.is_change:
            data = {name: value for name, value in data.items() if name in self.changed_data}
        serializer = WebhookSerializer(data=data, partial=self.is_change)
        if not serializer.is_valid():
            for name, errors in serializer.errors.items():
                if name not in self.errors:
                    self.add_error(name if name in self.fields else None, [str(e) for e in errors])
        if self.errors:
            return given
        found = {**given, **serializer.validated_data}
        if not self.is_change:
            return found
        return {name: value for name, value in found.items() if name in self.changed_data}


class WebhookForm(WebhookChangeForm):
    is_change = False

    owner = forms.CharField(
        max_length=150,
        help_text="The user name of an active user. The webhook works as long as the user is "
        "active, and receives events about keys of this user.",
    )
    field_order = ("owner", "name", "url")

    def __init__(self, *args: Any, site: Any, **kwargs: Any) -> None:
        del site  # unused, because this form looks up no names
        super().__init__(*args, **kwargs)
        url: Any = self.fields["url"]
        url.required = True
        url.help_text = "An https URL at a public address, or a URL within WEBHOOK_NETWORKS."

    def clean_owner(self) -> Any:
        """Return the active user with this name."""
        return active_user(self.cleaned_data["owner"])
