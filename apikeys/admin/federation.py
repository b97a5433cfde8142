"""Admin pages of issuers and trust policies: configuration, last use and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from apikeys import actions
from apikeys.admin.adding import AddByForm
from apikeys.admin.federation_forms import IssuerForm, TrustPolicyForm, shown_condition
from apikeys.admin.filters import DisabledFilter, UseFilter
from apikeys.admin.grants import GrantColumns
from apikeys.federation.kinds import policy_warnings
from apikeys.models import AuditEvent, Issuer, TrustPolicy
from infra_service.lib.admin import object_tool
from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.model_admin import BY_CREATION
from infra_service.lib.admin.templatetags.moments import relative
from infra_service.lib.admin.templatetags.words import breakable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django import forms
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from apikeys.actors import Actor

#: The maximum number of refusals on the page of a policy.
REFUSALS: Final = 10


def _works(obj: Any) -> bool:
    return obj.disabled_at is None


@admin.display(description="status")
def _shown_status(_admin: Any, obj: Any) -> str:
    """Return the status as a badge, with the time at which the object was disabled."""
    if _works(obj):
        return badge("ok", "Working")
    return format_html("{} {}", badge("idle", "Disabled"), relative(obj.disabled_at))


@admin.register(Issuer)
class IssuerAdmin(AddByForm):
    """The admin of issuers, with the status of their keys."""

    when_empty = (
        "Add a platform to accept its signed tokens. Pipelines on the platform then need no "
        "stored secret."
    )
    add_form_class = IssuerForm
    list_display = (
        "shown_name",
        "shown_status",
        "kind",
        "shown_url",
        "audience",
        "keys",
        "created",
    )
    orders = BY_CREATION
    opening_order = "-created"
    list_filter = (DisabledFilter,)
    fields = (
        "shown_status", "kind", "shown_url", "audience", "keys", "keys_url", "shown_algorithms",
        "longest_assertion", "created", "updated", "id",
    )  # fmt: skip
    tools = ("disable",)
    shown_status = _shown_status

    @admin.display(description="name")
    def shown_name(self, issuer: Issuer) -> str:
        """Return the name, or the URL of an issuer without a name."""
        return issuer.name or issuer.url

    @admin.display(description="URL")
    def shown_url(self, issuer: Issuer) -> str:
        """Return the issuer URL, which tokens contain in the ``iss`` claim."""
        return breakable(issuer.url)

    def heading(self, obj: Issuer) -> str:
        return self.shown_name(obj)

    @admin.display(description="keys")
    def keys(self, issuer: Issuer) -> str:
        """Describe the source of the keys and the result of the last fetch."""
        if issuer.inline_keys is not None:
            return "configured inline"
        fetched = issuer.key_set_fetched_at
        failed = f", {issuer.failures} failure{pluralize(issuer.failures)} since"
        return format_html(
            "{}{}",
            "never fetched" if fetched is None else format_html("fetched {}", relative(fetched)),
            failed if issuer.failures else "",
        )

    @admin.display(description="key set URL")
    def keys_url(self, issuer: Issuer) -> str:
        """Return the URL of the keys."""
        return breakable(issuer.jwks_url) or "from the discovery document"

    @admin.display(description="algorithms")
    def shown_algorithms(self, issuer: Issuer) -> str:
        """Return the signature algorithms, separated by commas."""
        return ", ".join(issuer.algorithms)

    @admin.display(description="maximum assertion lifetime")
    def longest_assertion(self, issuer: Issuer) -> str:
        """Return the maximum lifetime of an assertion."""
        return _duration(issuer.max_assertion_seconds)

    def add(self, actor: Actor, **fields: Any) -> Issuer:
        """Register an issuer."""
        return actions.create_issuer(actor=actor, **fields)

    @object_tool(
        label="Disable",
        permission="apikeys.change_issuer",
        question="Pipelines of this issuer can no longer get tokens, and their existing tokens "
        "stop working immediately. This cannot be undone.",
        offered=_works,
        destructive=True,
    )
    def disable(self, obj: Issuer, actor: Actor) -> str:
        actions.disable_issuer(issuer_id=obj.pk, actor=actor)
        return f"The issuer {obj.name or obj.url} is disabled."


@admin.register(TrustPolicy)
class TrustPolicyAdmin(GrantColumns, AddByForm):
    """The admin of trust policies, with their last run and refusals."""

    when_empty = (
        "A policy grants tokens to pipelines of an issuer. If no issuer exists, add one first."
    )
    add_form_class = TrustPolicyForm
    list_display = (
        "name", "shown_status", "owner", "shown_issuer", "shown_scopes", "bound_to", "last_used",
        "run", "created",
    )  # fmt: skip
    orders = BY_CREATION
    opening_order = "-created"
    list_filter = (DisabledFilter, UseFilter)
    list_select_related = ("owner", "issuer")
    search_fields = ("id",)
    search_help_text = "Part of the name, or an id."
    fields = (
        "shown_status", "owner", "shown_issuer", "shown_conditions", "warnings", "shown_scopes",
        "shown_binding", "longest_token", "expires", "last_used", "run", "refusals",
        "created", "updated", "id",
    )  # fmt: skip
    tools = ("disable",)
    shown_status = _shown_status

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return the policy with this id, or the policies with this text in their name."""
        return queryset.filter(Q(pk=term) | Q(name__icontains=term))

    def add_form(self, data: Any, requested: Mapping[str, Any]) -> forms.Form:
        # A link must not fill in other fields, such as the ids of a repository.
        chosen = {name: value for name, value in requested.items() if name == "issuer"}
        return TrustPolicyForm(data, initial=chosen, site=self.admin_site)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show only the issuer field first, because the issuer determines the other fields."""
        form = self.add_form(None, request.GET.dict())
        if request.method == "POST" or "repository" in form.fields:
            return super().add_view(request, form_url, extra_context)
        if not self.has_add_permission(request):
            raise PermissionDenied
        if "issuer" in request.GET:  # unknown or disabled: show the error
            form = self.add_form(request.GET, {})
        return self.form_page(
            request, form, title="Add trust policy", button="Continue", method="get"
        )

    def add(self, actor: Actor, **fields: Any) -> TrustPolicy:
        """Create a policy."""
        return actions.create_trust_policy(actor=actor, **fields)

    def prepare_object(self, request: HttpRequest, obj: TrustPolicy) -> None:
        """Show refusals only if the person may view the audit log."""
        super().prepare_object(request, obj)
        obj.may_view_audit_log = request.user.has_perm("apikeys.view_auditevent")  # type: ignore[attr-defined]  # for refusals

    @admin.display(description="issuer")
    def shown_issuer(self, policy: TrustPolicy) -> str:
        """Return a link to the issuer."""
        url = reverse("admin:apikeys_issuer_change", args=(policy.issuer_id,))
        return format_html('<a href="{}">{}</a>', url, policy.issuer.name or policy.issuer.url)

    @admin.display(description="maximum token lifetime")
    def longest_token(self, policy: TrustPolicy) -> str:
        """Return the maximum lifetime of tokens."""
        return _duration(policy.max_token_seconds)

    @admin.display(description="conditions")
    def shown_conditions(self, policy: TrustPolicy) -> str:
        lines = ((shown_condition(condition),) for condition in policy.conditions)
        return format_html_join("", "<div><code>{}</code></div>", lines)

    @admin.display(description="warnings")
    def warnings(self, policy: TrustPolicy) -> str:
        """Return warnings about conditions that are weaker than they seem."""
        found = policy_warnings(policy.issuer.kind, policy.conditions)
        return format_html_join("", "<div>{}</div>", ((text,) for text in found)) or "none"

    @admin.display(description="last run")
    def run(self, policy: TrustPolicy) -> str:
        """Return the run that obtained the last token."""
        run = policy.last_run or {}
        described = " ".join(
            str(run[name]) for name in ("repository", "commit", "run") if run.get(name)
        )
        return described or "none"

    @admin.display(description="last refusals")
    def refusals(self, policy: TrustPolicy) -> str:
        """Return refused exchanges with their reasons, newest first."""
        if not getattr(policy, "may_view_audit_log", False):
            return "See the audit log."
        events = AuditEvent.objects.filter(resource_id=policy.pk, action="assertion.refuse")
        lines = [
            (relative(event.occurred_at), _why(event.details))
            for event in events.order_by("-occurred_at", "-id")[:REFUSALS]
        ]
        if not lines:
            return "none"
        shown = format_html_join("", "<div>{} {}</div>", lines)
        url = f"{reverse('admin:apikeys_auditevent_changelist')}?q={policy.pk}"
        return format_html('{}<a href="{}">View all</a>', shown, url)

    @object_tool(
        label="Disable",
        permission="apikeys.change_trustpolicy",
        question="Pipelines can no longer get tokens through this policy, and all tokens that it "
        "issued stop working immediately. This cannot be undone.",
        offered=_works,
        destructive=True,
    )
    def disable(self, obj: TrustPolicy, actor: Actor) -> str:
        actions.disable_trust_policy(policy=obj, actor=actor)
        return f"The trust policy {obj.name} is disabled."


def _why(details: dict[str, Any]) -> str:
    """Return the reason for a refusal, with the unmet conditions."""
    unmet = (
        f"{one.get('claim')} was {one.get('had')!r}, expected {one.get('wanted')!r}"
        for one in details.get("unmet", ())
    )
    return "; ".join([str(details.get("because", "")), *unmet])


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{seconds} s" if rest else f"{minutes} min"
