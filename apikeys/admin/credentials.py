"""Keys and tokens: seen, issued, revoked. A digest is not even read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from apikeys import actions
from apikeys.admin.filters import StatusFilter
from apikeys.admin.issuing import AccessTokenForm, CredentialForm
from apikeys.audit import Actor
from apikeys.grants import EVERYWHERE
from apikeys.models import AccessToken, ApiKey, User
from apikeys.tokens import TokenKind
from infra_service.admin import ReadOnlyAdmin, object_tool
from infra_service.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

_MARKS: Final = {"ACTIVE": "ok", "EXPIRED": "idle", "REVOKED": "error"}


class CredentialAdmin(ReadOnlyAdmin):
    """What keys and tokens have in common."""

    more_statuses: ClassVar[tuple[tuple[str, str], ...]] = ()
    form_class: ClassVar[type[CredentialForm]] = CredentialForm
    #: Columns that are never read, so that nothing can show them.
    secret_columns: ClassVar[tuple[str, ...]] = ("digest",)

    list_display: tuple[str, ...] = (
        "name",
        "shown_status",
        "owner",
        "shown_scopes",
        "expires_at",
        "last_used_at",
    )
    list_filter = (StatusFilter,)
    list_select_related = ("created_by",)
    search_fields = ("id",)
    search_help_text = "An id, or the user name of the owner. Never paste a secret here."
    tools = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return them with their status and without their digests."""
        credentials: Any = super().get_queryset(request)
        shown: QuerySet[Any] = credentials.with_status().defer(*self.secret_columns)
        return shown

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by id or by owner, exactly; both have an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith(("key-", "tok-")):
            return self.with_id(queryset, term), False
        owner = User.objects.filter(username=term).first()
        return (queryset.none() if owner is None else queryset.filter(created_by=owner)), False

    def with_id(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return what has this id."""
        return queryset.filter(pk=term)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"apikeys.add_{self.opts.model_name}"))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Ask what to issue, issue it, and show the secret: in this answer and nowhere else."""
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        initial = {"owner": request.user.get_username()}
        form = self.form_class(request.POST if request.method == "POST" else None, initial=initial)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Issue an {self.opts.verbose_name}",
            "opts": self.opts,
            "form": form,
            "media": self.media,
        }
        if form.is_valid() and (issued := self._issued(request, form)):
            credential, secret = issued
            context |= {"title": "Copy the secret now", "credential": credential, "secret": secret}
            response = TemplateResponse(request, "admin/apikeys/secret.html", context)
            response["Cache-Control"] = "no-store"
            return response
        return TemplateResponse(request, "admin/apikeys/issue.html", context)

    def _issued(self, request: HttpRequest, form: CredentialForm) -> tuple[Any, str] | None:
        """Issue one and return it with its secret, or tell the form why it is refused."""
        try:
            return self.issue(Actor.of_person(request), **form.cleaned_data)
        except InvalidParameter as error:
            for fault in error.field_violations:
                form.add_error(fault["field"], fault["description"])
            return None

    def issue(self, actor: Actor, **fields: Any) -> tuple[Any, str]:
        """Issue one with the fields of the form; return it with its secret."""
        raise NotImplementedError

    @admin.display(description="status")
    def shown_status(self, credential: Any) -> str:
        """Return the status as a word with a mark."""
        word = credential.status.rpartition("_")[2]
        return format_html('<span class="status status-{}">{}</span>', _MARKS[word], word.title())

    @admin.display(description="owner")
    def owner(self, credential: Any) -> str:
        """Return the user name of the owner."""
        name: str = credential.created_by.get_username()
        return name

    @admin.display(description="scopes")
    def shown_scopes(self, credential: Any) -> str:
        """Return the scopes, one beside the other."""
        return format_html_join(
            " ", '<code class="scope">{}</code>', ((s,) for s in credential.scopes)
        )

    @admin.display(description="works")
    def shown_binding(self, credential: Any) -> str:
        """Return where it works."""
        binding = credential.binding
        if binding == EVERYWHERE:
            return "everywhere"
        ids = {
            "cluster": [] if binding.cluster_id is None else [binding.cluster_id],
            "component": sorted(binding.component_ids or ()),
            "environment": sorted(binding.environment_ids or ()),
        }
        lines = ((kind, one) for kind, them in ids.items() for one in them)
        return format_html_join("", '{} <span class="identifier">{}</span><br>', lines)

    @admin.display(description="id")
    def shown_id(self, credential: Any) -> str:
        """Return the id, to be copied."""
        return format_html('<span class="identifier">{}</span>', credential.pk)


def _works(credential: Any) -> bool:
    return credential.revoked_at is None


def _also(revoked: int) -> str:
    return f", and {revoked - 1} keys that descended from it" if revoked > 1 else ""


_COMMON = (
    "shown_id", "name", "owner", "shown_status", "shown_scopes", "shown_binding",
    "created_at", "expires_at", "last_used_at", "revoked_at",
)  # fmt: skip


@admin.register(ApiKey)
class ApiKeyAdmin(CredentialAdmin):
    """API keys."""

    secret_columns = ("digest", "previous_digest")
    fields = (*_COMMON, "previous_secret_works_until", "shown_maker")

    @admin.display(description="made by")
    def shown_maker(self, key: ApiKey) -> str:
        """Return the key that made it, which takes it along when it is revoked."""
        if key.maker_id is None:
            return str(self.get_empty_value_display())
        url = reverse("admin:apikeys_apikey_change", args=(key.maker_id,))
        by_token = f" by the token {key.maker_token_id}" if key.maker_token_id else ""
        return format_html('<a class="identifier" href="{}">{}</a>{}', url, key.maker_id, by_token)

    @admin.display(description="secret before the rotation works until")
    def previous_secret_works_until(self, key: ApiKey) -> str:
        """Return the end of the last rotation's grace period."""
        end = key.previous_digest_expires_at
        return str(self.get_empty_value_display()) if end is None else f"{end:%Y-%m-%d %H:%M:%S}"

    def issue(self, actor: Actor, **fields: Any) -> tuple[ApiKey, str]:
        """Create a key for its owner."""
        return actions.create_api_key(user_id=fields.pop("user").pk, actor=actor, **fields)

    @object_tool(
        label="Revoke",
        permission="apikeys.revoke_apikey",
        question="The key stops working at once, and with it every token that was minted from it "
        "and every key that it has made. This is final.",
        offered=_works,
        destructive=True,
    )
    def revoke(self, key: ApiKey, actor: Actor) -> str:
        revoked = actions.revoke_api_key(key=key, actor=actor)
        return f"The API key {key.name} is revoked{_also(revoked)}."


@admin.register(AccessToken)
class AccessTokenAdmin(CredentialAdmin):
    """Access tokens, issued and minted."""

    more_statuses = (("ended", "Ended with its key"),)
    form_class = AccessTokenForm
    list_display = (
        "name", "shown_status", "owner", "kind", "shown_scopes", "expires_at", "last_used_at",
    )  # fmt: skip
    search_help_text = (
        "An id, the id of the key that it was minted from, or the user name of the owner. "
        "Never paste a secret here."
    )
    fields = (*_COMMON, "kind", "minted_from")

    def with_id(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return the token of this id, or those that were minted from this key."""
        is_key = term.startswith("key-")
        return queryset.filter(api_key=term) if is_key else queryset.filter(pk=term)

    @admin.display(description="minted from")
    def minted_from(self, token: AccessToken) -> str:
        """Return the key, by its id alone: nothing else of it need be read."""
        if token.api_key_id is None:
            return "no key: an operator issued it"
        url = reverse("admin:apikeys_apikey_change", args=(token.api_key_id,))
        return format_html('<a class="identifier" href="{}">{}</a>', url, token.api_key_id)

    def issue(self, actor: Actor, **fields: Any) -> tuple[AccessToken, str]:
        """Issue a token to its owner."""
        kind = TokenKind[fields.pop("kind")]
        return actions.issue_access_token(kind=kind, actor=actor, **fields)

    @object_tool(
        label="Revoke",
        permission="apikeys.revoke_accesstoken",
        question="The token stops working at once, and with it every key that it has made. "
        "This is final.",
        offered=_works,
        destructive=True,
    )
    def revoke(self, token: AccessToken, actor: Actor) -> str:
        revoked = actions.revoke_access_token(token=token, actor=actor)
        return f"The access token {token.name} is revoked{_also(revoked)}."
