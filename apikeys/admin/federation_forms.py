"""Forms for new issuers and trust policies, validated like API requests."""

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
from apikeys.models.credentials import MAX_TOKEN_SECONDS
from infra_service.lib.api.parsers import decoded

_SERVICE_ACCOUNT: Final = "/kubernetes.io/serviceaccount"
_MENU: Final = "On the {0}'s page, choose Copy {0} ID from the ⋮ menu."
_GLAB: Final = "glab api projects/GROUP%2FNAME"
_UID: Final = "kubectl -n NAMESPACE get serviceaccount NAME -o jsonpath='{.metadata.uid}'"
#: The label and the help text of the field for each id.
WHERE: Final = {
    "repository_id": ("Repository id", "The output of: gh api repos/OWNER/NAME --jq .id"),
    "repository_owner_id": ("Owner id", "The output of: gh api repos/OWNER/NAME --jq .owner.id"),
    "project_id": ("Project id", f"{_MENU.format('project')} Or use id in the output of {_GLAB}."),
    "namespace_id": (
        "Group id",
        f"{_MENU.format('group')} Or use namespace.id in the output of {_GLAB}.",
    ),
    "/kubernetes.io/namespace": ("Namespace", "The namespace of the service account."),
    f"{_SERVICE_ACCOUNT}/name": ("Service account", "The name of the service account."),
    f"{_SERVICE_ACCOUNT}/uid": (
        "Uid of the service account",
        f"The uid changes when the account is recreated. Read the uid with: {_UID}",
    ),
    "organization_id": ("Organization id", "A UUID from the organization's Buildkite settings."),
    "pipeline_id": ("Pipeline id", "A UUID from the pipeline's Buildkite settings."),
    "oidc.circleci.com/project-id": ("Project id", "A UUID from the project's CircleCI settings."),
}


class JsonField(forms.CharField):
    """A field for JSON in the format of the API. Empty input means null."""

    widget = forms.Textarea

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return decoded(text.encode(errors="replace"))
        except ParseError as error:
            raise ValidationError("Enter valid JSON.") from error


class IssuerForm(forms.Form):
    required_css_class = "required"

    kind = forms.ChoiceField(choices=Issuer.Kind.choices)
    name = forms.CharField(max_length=200, help_text="A display name.")
    url = forms.CharField(
        label="URL",
        required=False,
        max_length=500,
        help_text="The exact value of the iss claim. Leave empty to use the platform's issuer URL.",
    )
    audience = forms.CharField(
        max_length=500,
        help_text="The exact value of the aud claim, such as the URL of this service. Tokens with "
        "further audiences are refused.",
    )
    jwks_url = forms.CharField(
        label="Key set URL",
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
        help_text="CA certificates (PEM) that replace the system's certificates when the service "
        "fetches the keys.",
    )

    def clean(self) -> dict[str, Any]:
        """Return the arguments of the action."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        serializer = IssuerSerializer(data=given)
        if not serializer.is_valid():
            for name, errors in serializer.errors.items():
                if name not in self.errors:
                    self.add_error(name if name in self.fields else None, [str(e) for e in errors])
            return given
        return {"fields": serializer.validated_data}


class TrustPolicyForm(CredentialForm):
    """A form for a new trust policy, from a repository and its ids or from explicit conditions.

    The issuer's platform determines the ids and origins that the form requests. Until an issuer is
    chosen, the form contains only the issuer field.
    """

    issuer = forms.ModelChoiceField(
        Issuer.objects.none(), help_text="The issuer that signs the tokens."
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Leave empty to use the name of the repository.",
    )
    repository = forms.CharField(
        max_length=500,
        required=False,
        help_text="The URL, such as https://HOST/acme/infra. It only sets the default name of the "
        "policy, here acme/infra. The ids select the repository.",
    )
    environment = forms.CharField(
        max_length=200, required=False, help_text="Accept only jobs of this environment."
    )
    branch = forms.CharField(
        max_length=200,
        required=False,
        help_text="Accept only this branch, and only while it is protected.",
    )
    written_conditions = JsonField(
        label="Conditions",
        required=False,
        help_text="An alternative to the ids, as JSON in the API's format.",
    )
    max_token_seconds = forms.IntegerField(
        label="Token lifetime in seconds", initial=3600, min_value=1, max_value=MAX_TOKEN_SECONDS
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        issuers: Any = self.fields["issuer"]
        issuers.queryset = Issuer.objects.filter(disabled_at=None).order_by("name", "pk")
        # The issuer in the URL has precedence, because the id fields belong to its platform.
        requested = self.initial.get("issuer") or self.data.get("issuer")
        chosen = issuers.queryset
        if requested:
            # PostgreSQL rejects NUL characters in text.
            chosen = chosen.none() if "\0" in str(requested) else chosen.filter(pk=requested)
        found = list(chosen[:2])
        if len(found) != 1:
            self.fields = {"issuer": issuers}
            return
        issuers.disabled = "issuer" in self.initial or "issuer" not in self.data
        self.initial["issuer"] = found[0]
        self._add_ids(found[0].kind)

    def _add_ids(self, kind: str) -> None:
        """Add a field for each id of the platform, and remove fields that do not apply to it."""
        for name in {"environment", "branch"} - set(preset_origins(kind)):
            del self.fields[name]
        if kind == Issuer.Kind.KUBERNETES:
            del self.fields["repository"]
            self.fields["name"].required, self.fields["name"].help_text = True, ""
        if kind == Issuer.Kind.BUILDKITE:
            self.fields["branch"].help_text = (
                "Accept only this branch. Buildkite's tokens do not state whether the branch is "
                "protected."
            )
        ids = {}
        for number, claim in enumerate(PLATFORMS[kind].ids):
            label, where = WHERE[claim]
            ids[f"id_{number}"] = forms.CharField(
                label=label, max_length=200, required=False, help_text=where
            )
        self.fields |= ids
        self.order_fields((
            "issuer", "repository", *ids, "environment", "branch", "written_conditions", "name",
            "owner", "scopes", "max_token_seconds",
        ))  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """Return the arguments of the action."""
        given = self.cleaned_data
        if "name" not in self.fields:
            return given
        given["name"] = given.get("name") or _name_of(given.get("repository", ""))
        if not given["name"] and "repository" in self.fields:
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
        """Return the conditions, or add errors to the form and return None."""
        kind, wanted = given["issuer"].kind, PLATFORMS[given["issuer"].kind].ids
        ids = {claim: given[f"id_{number}"].strip() for number, claim in enumerate(wanted)}
        if given["written_conditions"] is not None:
            if any(ids.values()):
                self.add_error("written_conditions", "Enter ids or conditions, not both.")
                return None
            return self._checked(given["written_conditions"], kind)
        if not wanted:
            self.add_error(
                "written_conditions", "Enter conditions: issuers of this kind have no id fields."
            )
        for number, claim in enumerate(wanted):
            if not ids[claim]:
                self.add_error(f"id_{number}", "Enter this id, or enter conditions.")
        if self.errors:
            return None
        origin = {name: given[name] for name in ("environment", "branch") if given.get(name)}
        return self._checked(preset(kind, ids, **origin), kind)

    def _checked(self, found: Any, kind: str) -> Any:
        faults = conditions.faults(found, PLATFORMS[kind].ids)
        for place, fault in faults.items():
            self.add_error("written_conditions", f"{place}: {fault}" if place else fault)
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
