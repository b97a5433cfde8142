"""Forms that issue keys and tokens, validated like API requests."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from django import forms
from django.utils import timezone

from apikeys.api.serializers import CredentialSerializer
from apikeys.bindings import EVERYWHERE, LISTS
from apikeys.models import MAX_BOUND_IDS, AccessToken, User
from apikeys.networks import ANYWHERE
from apikeys.scopes import Scope
from infra_service.lib.admin.names import names_of
from infra_service.lib.api.identifiers import parse_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra_service.lib.admin.site import AuditedSite

_LIFETIME: Final = dt.timedelta(days=90)
_MOMENT: Final = "%Y-%m-%dT%H:%M"
# Form fields that show the errors of serializer fields with other names.
_FORM_FIELDS: Final = {"binding": "cluster_id"}


def _in_ninety_days() -> dt.datetime:
    return timezone.now() + _LIFETIME


def active_user(name: str) -> User:
    """Return the active user with this name.

    Raises:
        ValidationError: no active user has the name.
    """
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise forms.ValidationError("There is no active user with this name.")
    return user


def _names_field(
    kind: str, help_text: str = "One name or id per line. Leave empty for all."
) -> forms.CharField:
    return forms.CharField(
        label=f"Restrict to {kind}s",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, **names_of(kind)}),
        help_text=help_text,
    )


class Preset(NamedTuple):
    """A preset of scopes, and the form field that it makes mandatory."""

    label: str
    scopes: tuple[str, ...]
    limit: str = ""


PRESETS: Final = {
    "read-only": Preset("Read only", (Scope.STATE_READ, Scope.CLUSTER_READ)),
    "pipeline": Preset(
        "Pipeline for one environment", (Scope.STATE_READ, Scope.STATE_WRITE), "environment_ids"
    ),
    "agent": Preset("Agent of a cluster", (Scope.CLUSTER_REPORT,), "cluster_id"),
}


class CredentialForm(forms.Form):
    required_css_class = "required"
    #: The presets on the page. Each is a link to the same form with ``?preset=``.
    presets: ClassVar[Mapping[str, Preset]] = {}

    owner = forms.CharField(max_length=150, help_text="The user name of an active user.")
    name = forms.CharField(max_length=200, help_text="The purpose of the credential.")
    scopes = forms.MultipleChoiceField(
        choices=[(s.value, f"{s.value} – {s.label}") for s in Scope],  # noqa: RUF001 - a dash
        widget=forms.CheckboxSelectMultiple,
    )
    expires_at = forms.DateTimeField(
        label="Expires",
        required=False,
        initial=_in_ninety_days,
        input_formats=[_MOMENT, f"{_MOMENT}:%S"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MOMENT),
        help_text="In UTC. Leave empty for no expiry.",
    )
    cluster_id = forms.CharField(
        label="Restrict to cluster",
        required=False,
        widget=forms.TextInput(attrs=names_of("cluster")),
        help_text="A name or an id. With a cluster, the credential cannot access states. Leave "
        "empty for no restriction.",
    )
    application_ids = _names_field(
        "application", "One name or id per line. Includes current and future components."
    )
    component_ids = _names_field("component")
    environment_ids = _names_field("environment")
    allowed_networks = forms.CharField(
        label="Allowed networks",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Networks such as 10.0.0.0/8, one per line. Leave empty to allow any address.",
    )

    def __init__(self, *args: Any, site: AuditedSite, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.site = site
        self.preset = str(self.initial.get("preset", ""))
        if chosen := self.presets.get(self.preset):
            self.initial["scopes"] = chosen.scopes
            self.initial["kind"] = AccessToken.Kind.SERVICE
            if chosen.limit:
                limit = self.fields[chosen.limit]
                limit.required = True
                limit.help_text = limit.help_text.partition(" Leave empty")[0]

    def clean_cluster_id(self) -> str | None:
        text = self.cleaned_data["cluster_id"]
        return self._ids("cluster", [text])[0] if text else None

    def clean_application_ids(self) -> list[str] | None:
        return self._listed("application", self.cleaned_data["application_ids"])

    def clean_component_ids(self) -> list[str] | None:
        return self._listed("component", self.cleaned_data["component_ids"])

    def clean_environment_ids(self) -> list[str] | None:
        return self._listed("environment", self.cleaned_data["environment_ids"])

    def _listed(self, kind: str, text: str) -> list[str] | None:
        """Return the ids of the entries in the text, or None (all) if the text is empty."""
        if not text:
            return None
        if not (entries := _entries(text)):
            raise forms.ValidationError(f"There is no such {kind}. Check the name or id.")
        if len(entries) > MAX_BOUND_IDS:
            raise forms.ValidationError(f"More than {MAX_BOUND_IDS} names and ids.")
        return self._ids(kind, entries)

    def _ids(self, kind: str, texts: list[str]) -> list[str]:
        ids, faults = self.site.ids_of(kind, texts)
        if faults:
            raise forms.ValidationError(faults)
        return ids

    def clean_owner(self) -> User:
        """Return the active user with this name."""
        return active_user(self.cleaned_data["owner"])

    def clean(self) -> dict[str, Any]:
        """Return ``user`` and the fields for the actions."""
        given = self.cleaned_data
        moment: dt.datetime | None = given.get("expires_at")
        binding = {name: given.get(name) for name in ("cluster_id", *LISTS)}
        serializer = CredentialSerializer(
            data={
                "name": given.get("name"),
                "scopes": given.get("scopes"),
                "expires_at": None if moment is None else moment.isoformat(),
                "binding": binding if any(binding.values()) else None,
                "allowed_networks": _words(given.get("allowed_networks")) or None,
            }
        )
        if not serializer.is_valid():
            self._add_form_errors(serializer.errors)
        if self.errors:
            return given
        kind = {"kind": given["kind"]} if "kind" in given else {}
        defaults = {"expires_at": None, "binding": EVERYWHERE, "allowed_networks": ANYWHERE}
        return {"user": given["owner"], **kind, **defaults, **serializer.validated_data}

    def _add_form_errors(self, errors: Any, field: str | None = None) -> None:
        """Add the serializer's errors to the form's fields."""
        if isinstance(errors, dict):
            for name, inner in errors.items():
                known = name if name in self.fields else _FORM_FIELDS.get(name, field)
                self._add_form_errors(inner, known)
        elif isinstance(errors, list):
            for error in () if field in self.errors else errors:
                self.add_error(field, str(error))


class ApiKeyForm(CredentialForm):
    #: API keys cannot access states. They mint tokens, which requires ``apikey:write``.
    presets = {
        name: preset._replace(scopes=(*preset.scopes, Scope.APIKEY_WRITE))
        for name, preset in PRESETS.items()
        if name != "agent"
    }


class AccessTokenForm(CredentialForm):
    presets = PRESETS
    kind = forms.ChoiceField(
        choices=AccessToken.Kind.choices,
        initial=AccessToken.Kind.PERSONAL,
        widget=forms.RadioSelect,
        help_text="The type of caller: a person or a service.",
    )
    field_order = ("owner", "kind")


def _words(text: str | None) -> list[str]:
    return re.split(r"[\s,]+", text.strip()) if text and text.strip() else []


def _entries(text: str) -> list[str]:
    """Split the text at commas and newlines; if it contains only ids, also at spaces."""
    words = re.split(r"[\s,]+", text.strip())
    if all(parse_uuid(word) is not None for word in words):
        return words
    return [
        entry for line in text.splitlines() for part in line.split(",") if (entry := part.strip())
    ]
