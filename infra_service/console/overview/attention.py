"""Findings of the overview: a number, the first objects, and links to the full lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone

from apikeys.models import AccessToken, ApiKey, User
from apikeys.querysets import SOON, UNUSED_AFTER
from infra_service.console.overview.clusters import clusters_in_error, silent_clusters
from infra_service.console.overview.counting import SHOWN, Number, number_of, total_of
from infra_service.console.overview.credentials import (
    Found,
    expiring_soon,
    first_of_all,
    never_used,
)
from infra_service.console.overview.events import failed_logins
from infra_service.console.overview.states import (
    HeldLocks,
    describe_locks,
    leaked_tokens,
    not_indexed,
)
from infra_service.console.overview.webhooks import undelivered
from infra_service.models import LATE_AFTER, HousekeepingPart
from states.models import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AnonymousUser


class Finding(NamedTuple):
    """A finding that needs attention."""

    #: The identifier, which is also the name of the template for a row.
    name: str
    title: str
    sign: str
    number: Number
    rows: Sequence[Any]
    #: Label and URL of each full list.
    links: Sequence[tuple[str, str]] = ()

    @property
    def template(self) -> str:
        """Return the path of the template for a row."""
        return f"admin/overview/{self.name}.html"


def findings(
    user: User | AnonymousUser, locks: HeldLocks | None, clusters: dict[str, Any] | None
) -> list[Finding]:
    """Return the findings that the user may view, including findings with the number 0."""
    found = []
    if locks is not None:
        found += [_locks(locks, user), _freezes(), _leaked(user), _unindexed()]
    if clusters is not None:
        found.append(_silent(clusters["silent"]))
        if user.has_perm("workloads.view_workload"):
            found.append(_errors(clusters["errors"]))
    if ending := expiring_soon(user):
        found.append(_ending(ending))
    if unused := never_used(user):
        found.append(_unused(unused))
    if settings.OWNER_IDLE_DAYS and user.has_perm("apikeys.view_user"):
        found.append(_idle(settings.OWNER_IDLE_DAYS))
    if user.has_perm("apikeys.view_auditevent"):
        found.append(_logins())
    if user.has_perm("infra_service.view_housekeepingpart"):
        found.append(_jobs())
    if user.has_perm("webhooks.view_delivery"):
        found.append(_undelivered())
    return found


def _locks(locks: HeldLocks, user: User | AnonymousUser) -> Finding:
    number = Number(len(locks.stale), is_more=locks.number.is_more)
    rows = describe_locks(locks.stale[:SHOWN], user)
    links = [_link("states_state", "is=stale", f"All {number}")]
    return Finding("locks", "Locked for over an hour", "error", number, rows, links)


def _freezes() -> Finding:
    overdue = State.objects.overdue().order_by("pk")
    rows = list(overdue.select_related("component", "environment")[:SHOWN])
    number = number_of(overdue)
    links = [_link("states_state", "is=overdue", f"All {number}")]
    return Finding("freezes", "Overdue freezes", "error", number, rows, links)


def _leaked(user: User | AnonymousUser) -> Finding:
    number, rows = leaked_tokens(user)
    links = []
    if user.has_perm("apikeys.view_auditevent"):
        links = [_link("apikeys_auditevent", "action=state.token_found", "All findings")]
    return Finding("leaked", "Active keys and tokens in states", "error", number, rows, links)


def _unindexed() -> Finding:
    number, rows = not_indexed()
    title = "States missing from the resource index"
    return Finding("unindexed", title, "warning", number, rows)


def _silent(number: Number) -> Finding:
    rows = silent_clusters() if number.value else []
    links = [_link("workloads_cluster", "reports=missing", f"All {number}")]
    return Finding("silent", "Clusters without reports", "lost", number, rows, links)


def _errors(number: Number) -> Finding:
    rows = clusters_in_error() if number.value else []
    links = [_link("workloads_cluster", "health=ERROR", "All clusters with errors")]
    return Finding("errors", "Workloads in error", "error", number, rows, links)


def _ending(found: Sequence[Found]) -> Finding:
    title = f"Keys and tokens that expire within {SOON.days} days"
    rows = first_of_all(found, "expires_at")
    links = _lists_of(found, "expiring")
    number = total_of([one.number for one in found])
    return Finding("ending", title, "warning", number, rows, links)


def _unused(found: Sequence[Found]) -> Finding:
    title = f"Keys and tokens never used in {UNUSED_AFTER.days} days"
    rows = first_of_all(found, "created_at")
    number = total_of([one.number for one in found])
    return Finding("unused", title, "warning", number, rows, _lists_of(found, "unused"))


def _idle(days: int) -> Finding:
    owners = User.objects.idle(days, timezone.now()).filter(
        Exists(ApiKey.objects.active().filter(created_by=OuterRef("pk")))
        | Exists(AccessToken.objects.issued().active().filter(created_by=OuterRef("pk")))
    )
    title = f"Owners of keys who have not signed on for {days} day{pluralize(days)}"
    links = [_link("apikeys_user", "signed_on=idle", "All idle owners")]
    rows = list(owners.order_by("last_login", "pk")[:SHOWN])
    return Finding("idle", title, "warning", number_of(owners), rows, links)


def _lists_of(found: Sequence[Found], status: str) -> list[tuple[str, str]]:
    return [
        _link(
            f"apikeys_{one.model._meta.model_name}",
            f"status={status}",
            f"{one.number} {_kind(one)}",
        )
        for one in found
        if one.number.value
    ]


def _kind(found: Found) -> str:
    names = found.model._meta
    return str(names.verbose_name if found.number.value == 1 else names.verbose_name_plural)


def _logins() -> Finding:
    number, rows = failed_logins()
    links = [_link("apikeys_auditevent", "action=user.login_failed", "All failed logins")]
    title = "Failed logins in the last day"
    return Finding("logins", title, "warning", number, rows[:SHOWN], links)


def _jobs() -> Finding:
    late = list(HousekeepingPart.objects.late().order_by("succeeded_at"))
    title = f"Jobs not completed for {LATE_AFTER.days} days"
    return Finding("jobs", title, "error", Number(len(late)), late)


def _undelivered() -> Finding:
    late, failed, rows = undelivered()
    number = total_of([late, failed])
    links = []
    if failed.value:
        links.append(_link("webhooks_delivery", "status=FAILED", "All failed deliveries"))
    if late.value:
        links.append(_link("webhooks_delivery", "status=late", f"{late} waiting"))
    title = "Failed or late webhook deliveries"
    return Finding("undelivered", title, "error", number, rows, links)


def _link(model: str, query: str, text: str) -> tuple[str, str]:
    return text, f"{reverse(f'admin:{model}_changelist')}?{query}"
