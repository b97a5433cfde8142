"""Admin pages that list, issue, rotate and revoke keys and tokens. The pages never load digests."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.db.models import Q
from django.utils import timezone
from django.utils.html import format_html

from apikeys import actions
from apikeys.admin.filters import StatusFilter
from apikeys.admin.grants import GrantColumns
from apikeys.admin.issue_pages import IssuePages
from apikeys.admin.issuing import AccessTokenForm, ApiKeyForm
from apikeys.admin.revoking import RevokeSelected
from apikeys.admin.terraform_login import TerraformLoginPage
from apikeys.credential_names import credential_link, credential_names, user_link
from apikeys.identifiers import is_credential_id
from apikeys.models import AccessToken, ApiKey, User
from apikeys.querysets import ApiKeyStatus
from apikeys.tokens import TokenKind
from apikeys.usability import UnusableReason, status_word
from infra_service.lib.admin import object_tool
from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.database.bounded_pages.segments import Segment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.actors import Actor

#: The segments of the expiry order that can contain rows of each status.
_PARTS: Final = {
    "active": slice(0, 2),
    "owner": slice(0, 2),
    "unused": slice(0, 2),
    "expiring": slice(0, 1),
    "expired": slice(0, 1),
    "revoked": slice(2, 3),
}
#: The badge of each reason that is not an error.
_MARKS: Final[dict[str | None, str]] = {
    None: "ok",
    UnusableReason.EXPIRED: "idle",
    UnusableReason.API_KEY_EXPIRED: "idle",
    UnusableReason.TRUST_POLICY_EXPIRED: "idle",
}


class CredentialAdmin(GrantColumns, RevokeSelected, IssuePages):
    """The shared admin of keys and tokens."""

    more_statuses: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Columns with the ids of the credentials' origins.
    origin_columns: ClassVar[tuple[str, ...]]
    #: Columns that are never loaded, so that no page can show them.
    secret_columns: ClassVar[tuple[str, ...]] = ("digest",)

    list_display: tuple[str, ...] = (
        "name",
        "shown_status",
        "owner",
        "shown_scopes",
        "bound_to",
        "expires",
        "last_used",
    )
    list_filter = (StatusFilter,)
    orders: ClassVar[Any] = {"expires": ("expires_at", "id")}
    csv_columns = ("id",)
    list_select_related = ("created_by",)
    search_fields = ("id",)
    search_help_text = "An id, a name, or the user name of the owner. Never paste a secret here."
    tools: ClassVar[tuple[str, ...]] = ("revoke",)
    revoked = moment_of("revoked_at", "revoked")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the credentials with their status and without their digests."""
        credentials: Any = super().get_queryset(request)
        shown: QuerySet[Any] = credentials.with_status().defer(*self.secret_columns)
        return shown

    def segments(self, key: Sequence[str], params: Mapping[str, str]) -> Sequence[Segment]:
        """Return the segments: rows with an expiry, then rows without an expiry, then revoked rows.

        The database can then use the index of expiring credentials, which excludes revoked rows.
        """
        if key[0].removeprefix("-") != "expires_at":
            return super().segments(key, params)
        status = params.get(StatusFilter.parameter_name, "")
        ends = Q(revoked_at=None, expires_at__isnull=False)
        if status in ("active", "owner", "unused"):
            # Skip the expired credentials at the start of the index.
            ends &= Q(expires_at__gt=timezone.now())
        parts: Sequence[Segment] = (
            Segment(ends, key),
            Segment(Q(revoked_at=None, expires_at=None), key[1:]),
            Segment(Q(revoked_at__isnull=False), key[1:]),
        )
        return parts[_PARTS.get(status, slice(None))]

    def prepare_object(self, request: HttpRequest, obj: Any) -> None:
        """Look up the names of the credential's origins."""
        super().prepare_object(request, obj)
        origins = (getattr(obj, column) for column in self.origin_columns)
        obj.names = credential_names(request.user, origins)

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Find credentials by id, by owner, or by a part of the name."""
        if is_credential_id(term):
            return self.with_id(queryset, term)
        owner = User.objects.filter(username=term).first()
        if owner is not None:
            return queryset.filter(created_by=owner)
        return queryset.filter(name__icontains=term)

    def with_id(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.filter(pk=term)

    @admin.display(description="status")
    def shown_status(self, credential: Any) -> str:
        """Return a badge with the status, or with the reason why the credential is unusable."""
        reason = credential.unusable_reason
        return badge(_MARKS.get(reason, "error"), status_word(reason))

    @admin.display(description="owner")
    def owner(self, credential: Any) -> str:
        name: str = credential.created_by.get_username()
        return name

    @admin.display(description="owner")
    def owner_link(self, credential: Any) -> str:
        return user_link(credential.created_by_id, self.owner(credential))

    @admin.display(description="allowed networks")
    def shown_networks(self, credential: Any) -> str:
        return ", ".join(credential.allowed_networks or ["any address"])

    @admin.display(description="id")
    def shown_id(self, credential: Any) -> str:
        return format_html('<span class="identifier">{}</span>', credential.pk)


def _works(credential: Any) -> bool:
    return credential.revoked_at is None


def _is_active(key: Any) -> bool:
    return bool(key.status == ApiKeyStatus.ACTIVE)


class RotationForm(forms.Form):
    grace_period = forms.IntegerField(
        label="Grace period in seconds",
        min_value=0,
        max_value=int(actions.MAX_GRACE_PERIOD.total_seconds()),
        initial=0,
        help_text="The time for which the old secret stays valid. After a leak, revoke the key "
        "instead.",
    )


def _also(revoked: int) -> str:
    keys = "1 key" if revoked == 2 else f"{revoked - 1} keys"  # noqa: PLR2004 - itself and another
    return f", and {keys} created from it" if revoked > 1 else ""


_COMMON = (
    "shown_status", "owner_link", "shown_scopes", "shown_binding", "shown_networks", "expires",
    "last_used", "last_used_address", "created", "revoked",
)  # fmt: skip


@admin.register(ApiKey)
class ApiKeyAdmin(CredentialAdmin):
    form_class = ApiKeyForm
    when_empty = "People and pipelines mint access tokens from API keys. Add a key to start."
    secret_columns = ("digest", "previous_digest")
    origin_columns = ("maker_id", "maker_token_id")
    fields = (*_COMMON, "previous_secret_ends", "shown_parent", "shown_id")
    tools = ("rotate", "revoke")
    previous_secret_ends = moment_of("old_secret_expires_at", "old secret works until")

    @admin.display(description="created by")
    def shown_parent(self, key: Any) -> str:
        """Return a link to the parent. Revoking the parent also revokes this key."""
        if key.maker_id is None:
            return str(self.get_empty_value_display())
        made_by = credential_link(key.maker_id, key.names)
        if not key.maker_token_id:
            return made_by
        return format_html("{} by {}", made_by, credential_link(key.maker_token_id, key.names))

    def issue(self, actor: Actor, **fields: Any) -> tuple[ApiKey, str]:
        return actions.create_api_key(user_id=fields.pop("user").pk, actor=actor, **fields)

    @object_tool(
        label="Rotate",
        permission="apikeys.add_apikey",
        question="The service generates a new secret and shows it once. The old secret expires at "
        "the end of the grace period.",
        form=RotationForm,
        defaults=lambda _key: {"grace_period": 0},
        offered=_is_active,
        # Another rotation, such as by a double click, would end the first grace period.
        displayed=lambda key: key.rotated_at,
        change="The key was rotated",
    )
    def rotate(self, obj: ApiKey, actor: Actor, *, grace_period: int, check: Any) -> str:
        obj.new_secret = actions.rotate_api_key(  # type: ignore[attr-defined]  # for after_tool
            keys=ApiKey.objects.all(),
            key_id=obj.pk,
            grace_period=dt.timedelta(seconds=grace_period),
            actor=actor,
            check=check,
        )
        return f"The API key {obj.name} has a new secret."

    @object_tool(
        label="Revoke",
        permission="apikeys.revoke_apikey",
        question="The key, the keys and trust policies that it created, and all their tokens stop "
        "working immediately. This cannot be undone.",
        offered=_works,
        destructive=True,
    )
    def revoke(self, obj: ApiKey, actor: Actor) -> str:
        revoked = actions.revoke_api_key(key=obj, actor=actor)
        return f"The API key {obj.name} is revoked{_also(revoked)}."


@admin.register(AccessToken)
class AccessTokenAdmin(TerraformLoginPage, CredentialAdmin):
    when_empty = (
        "API keys mint tokens, pipelines exchange their identity tokens for them, and terraform "
        "login and operators issue them."
    )
    more_statuses = (("ended", "Its key or policy is no longer valid"),)
    form_class = AccessTokenForm
    origin_columns = ("api_key_id", "trust_policy_id")
    list_display = (
        "name", "shown_status", "owner", "kind", "shown_scopes", "bound_to", "expires",
        "last_used",
    )  # fmt: skip
    search_help_text = (
        "The id of a token or of its key or policy, a name, or the user name of the owner. Never "
        "paste a secret here."
    )
    fields = (*_COMMON, "kind", "minted_from", "shown_id")

    def with_id(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return the token with this id, or the tokens of the key or policy with this id."""
        if term.startswith("key-"):
            return queryset.filter(api_key=term)
        is_policy = term.startswith("fed-")
        return queryset.filter(trust_policy=term) if is_policy else queryset.filter(pk=term)

    @admin.display(description="minted from")
    def minted_from(self, token: Any) -> str:
        """Return a link to the key or the trust policy of the token."""
        origin = token.trust_policy_id or token.api_key_id
        if origin is None:
            return "none: issued by an operator"
        return credential_link(origin, token.names)

    def issue(self, actor: Actor, **fields: Any) -> tuple[AccessToken, str]:
        kind = TokenKind[fields.pop("kind")]
        return actions.issue_access_token(kind=kind, actor=actor, **fields)

    @object_tool(
        label="Revoke",
        permission="apikeys.revoke_accesstoken",
        question="The token, the keys and trust policies that it created, and all their tokens "
        "stop working immediately. This cannot be undone.",
        offered=_works,
        destructive=True,
    )
    def revoke(self, obj: AccessToken, actor: Actor) -> str:
        revoked = actions.revoke_access_token(token=obj, actor=actor)
        return f"The access token {obj.name} is revoked{_also(revoked)}."
