"""Forms for new issuers and trust policies; validation is shared with the API."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from rest_framework.exceptions import ParseError

from apikeys.admin.issuing import CredentialForm
from apikeys.api.federation_serializers import IssuerSerializer
from apikeys.federation import conditions
from apikeys.federation.platforms import PLATFORMS
from apikeys.federation.presets import preset, preset_origins
from apikeys.models import Issuer
from infra_service.lib.api.parsers import decoded

_IDS_OF: Final = "; ".join(
    f"{Issuer.Kind(kind).label}: {', '.join(claim.rpartition('/')[2] for claim in platform.ids)}"
    for kind, platform in PLATFORMS.items()
    if platform.ids
)


class JsonField(forms.CharField):
    """JSON in the API's format; empty input is null."""

    widget = forms.Textarea

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return decoded(text.encode(errors="replace"))
        except ParseError as error:
            raise ValidationError("Enter a valid JSON.") from error


class IssuerForm(forms.Form):
    required_css_class = "required"

    kind = forms.ChoiceField(choices=Issuer.Kind.choices)
    name = forms.CharField(max_length=200, help_text="A display name.")
    url = forms.CharField(
        label="URL",
        required=False,
        max_length=500,
        help_text="The exact value of the iss claim. Leave empty for the platform's own.",
    )
    audience = forms.CharField(
        max_length=500,
        help_text="The value of the aud claim, such as the URL of this service. Request tokens for "
        "this audience only.",
    )
    jwks_url = forms.CharField(
        label="Keys at",
        required=False,
        max_length=500,
        help_text="Leave empty to use the address in the discovery document.",
    )
    inline_keys = JsonField(
        label="Keys",
        required=False,
        help_text="A JWK Set, for an issuer that this service cannot reach. The service then "
        "fetches no keys.",
    )
    ca = forms.CharField(
        label="Certificates",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Certificates (PEM) to trust instead of the system's when the service fetches "
        "the keys.",
    )

    def clean(self) -> dict[str, Any]:
        """Return the fields as the action takes them."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        serializer = IssuerSerializer(data=given)
        if not serializer.is_valid():
            for name, errors in serializer.errors.items():
                if name not in self.errors:
                    self.add_error(name if name in self.fields else None, [str(e) for e in errors])
            return given
        return {"fields": serializer.validated_data}


class TrustPolicyForm(CredentialForm):
    """A new trust policy, from a repository and its ids or from explicit conditions."""

    issuer = forms.ModelChoiceField(
        Issuer.objects.none(), help_text="The issuer that signs the tokens."
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Leave empty for the issuer of the repository's platform.",
    )
    repository = forms.CharField(
        max_length=500,
        required=False,
        help_text="The address, such as https://github.com/acme/infra. It becomes the name of the "
        "policy.",
    )
    ids = forms.CharField(
        label="Ids",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"Separate lines, in this order. {_IDS_OF}.",
    )
    environment = forms.CharField(
        max_length=200, required=False, help_text="Only jobs of this environment."
    )
    branch = forms.CharField(
        max_length=200,
        required=False,
        help_text="Only this branch, and only while it is protected.",
    )
    written_conditions = JsonField(
        label="Conditions",
        required=False,
        help_text="Replaces the ids. Use the format of the API.",
    )
    max_token_seconds = forms.IntegerField(
        label="Token lifetime in seconds", initial=3600, min_value=1, max_value=43_200
    )
    field_order = (
        "issuer", "repository", "ids", "environment", "branch", "written_conditions", "name",
        "owner", "scopes", "max_token_seconds",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        issuers: Any = self.fields["issuer"]
        issuers.queryset = Issuer.objects.filter(disabled_at=None).order_by("name", "pk")

    def clean(self) -> dict[str, Any]:
        """Return the fields as the action takes them."""
        given = self.cleaned_data
        given["name"] = given.get("name") or _name_of(given.get("repository", ""))
        if not given["name"]:
            self.add_error("name", "Enter a name or a repository.")
        found = None if self.errors else self._conditions(given)
        cleaned = super().clean()
        if self.errors or found is None:
            return cleaned
        owner = cleaned.pop("user")
        return {
            "owner_id": owner.pk,
            "issuer_id": given["issuer"].pk,
            "conditions": found,
            "max_token_seconds": given["max_token_seconds"],
            **cleaned,
        }

    def _conditions(self, given: dict[str, Any]) -> Any:
        """Return the conditions, or None with errors on the form."""
        kind = given["issuer"].kind
        ids = given["ids"].split()
        if given["written_conditions"] is not None:
            if ids:
                self.add_error("ids", "Enter ids or conditions, not both.")
            return self._checked("written_conditions", given["written_conditions"], kind)
        wanted = PLATFORMS[kind].ids
        if not wanted or len(ids) != len(wanted):
            names = ", ".join(wanted) or "not defined: write conditions instead"
            self.add_error("ids", f"The ids of {given['issuer'].get_kind_display()} are {names}.")
            return None
        origin = {name: given[name] for name in ("environment", "branch") if given[name]}
        for name in origin.keys() - set(preset_origins(kind)):
            self.add_error(name, f"{given['issuer'].get_kind_display()} publishes no ids.")
            return None
        return self._checked(
            "ids", preset(kind, dict(zip(wanted, ids, strict=True)), **origin), kind
        )

    def _checked(self, field: str, found: Any, kind: str) -> Any:
        faults = conditions.faults(found, PLATFORMS[kind].ids)
        for place, fault in faults.items():
            self.add_error(field, f"{place}: {fault}" if place else fault)
        return found


def _name_of(repository: str) -> str:
    """Return the repository's name from its URL."""
    try:
        path = urlsplit(repository).path or repository
    except ValueError:
        path = repository
    return path.strip("/").removesuffix(".git")[:200]


def shown_condition(condition: dict[str, Any]) -> str:
    operator = next(name for name in conditions.OPERATORS if name in condition)
    return f"{condition['claim']} {operator} {json.dumps(condition[operator])}"
