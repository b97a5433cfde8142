"""Names and links of the resources of audit events, for users with permission to view them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.urls import reverse

from apikeys.models import AccessToken, ApiKey, AuditEvent, Issuer, TrustPolicy, User
from infra_service.lib.admin.permissions import may_view
from infra_service.lib.database.bounded_pages import read_page
from infra_service.webhooks.models import WebhookEndpoint
from states.models import Application, Component, Environment, State
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from django.contrib.auth.models import AnonymousUser

#: The maximum number of resources of each kind that a search by name finds.
MOST_OF_A_KIND: Final = 20

# The model and its name column, by the first word of the action. A state has no name column.
_NAMED: Final[dict[str, tuple[Any, str]]] = {
    "state": (State, ""),
    "api_key": (ApiKey, "name"),
    "access_token": (AccessToken, "name"),
    "issuer": (Issuer, "name"),
    "trust_policy": (TrustPolicy, "name"),
    "assertion": (TrustPolicy, "name"),
    "application": (Application, "name"),
    "component": (Component, "name"),
    "environment": (Environment, "name"),
    "cluster": (Cluster, "name"),
    "workload": (Cluster, "name"),  # each event about workloads names their cluster
    "webhook": (WebhookEndpoint, "name"),
    "user": (User, "username"),
    "group": (Group, "name"),
}
# Kinds that can be deleted. The event of the deletion records the name.
_DELETED: Final = ("application", "component", "environment", "cluster", "webhook", "group")


def describe(
    events: Iterable[AuditEvent], user: User | AnonymousUser
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the names and links of the events' resources by ``key_of(event)``."""
    ids: dict[str, set[str]] = defaultdict(set)
    for event in events:
        kind, resource_id = key_of(event)
        ids[kind].add(resource_id)
    return {
        (kind, resource_id): (name, url)
        for kind, of_kind in ids.items()
        for resource_id, name, url in _names(kind, of_kind, user)
    }


def key_of(event: AuditEvent) -> tuple[str, str]:
    """Return the kind and the id of the event's resource."""
    return event.action.partition(".")[0], event.resource_id


def _names(
    kind: str, ids: Collection[str], user: User | AnonymousUser
) -> Iterator[tuple[str, str, str]]:
    """Yield id, name and link of each resource that exists and has a name."""
    model, column = _NAMED.get(kind, (None, ""))
    if model is None:
        return
    label = f"{model._meta.app_label}_{model._meta.model_name}"
    if not may_view(user, model):
        return
    rows: Any = model._default_manager
    rows = rows.only(column) if column else rows.select_related("component", "environment")
    known = [pk for pk in ids if _is_id_of(model, pk)]
    for pk, row in rows.in_bulk(known).items():
        if name := getattr(row, column) if column else str(row):
            yield str(pk), name, reverse(f"admin:{label}_change", args=(pk,))


def ids_named(text: str, user: User | AnonymousUser) -> list[str]:
    """Return the ids of resources with this text in their name, the newest of each kind.

    Like the list of states, the search finds states by words from the names of the component,
    environment and application. The search finds a deleted resource by the name in the event of the
    deletion. It covers the kinds that the user may view, and reads a bounded number of rows of each
    kind.
    """
    from states.admin.search import search  # noqa: PLC0415 - its package registers pages at the site

    found: list[str] = []
    for model, column in dict.fromkeys(_NAMED.values()):
        if may_view(user, model):
            named = Q((f"{column}__icontains", text)) if column else search(text).condition
            rows: Any = model._default_manager.filter(named)
            page = read_page(rows, key=("-id",), position=None, size=MOST_OF_A_KIND)
            found += (str(row.pk) for row in page.rows)
    for kind in _DELETED:
        if may_view(user, _NAMED[kind][0]):
            events = AuditEvent.objects.filter(
                action=f"{kind}.delete", details__name__icontains=text
            )
            page = read_page(
                events, key=("-occurred_at", "-id"), position=None, size=MOST_OF_A_KIND
            )
            found += (event.resource_id for event in page.rows)
    return found


def _is_id_of(model: Any, text: str) -> bool:
    """Return whether the text can be an id of the model. A failed login may have no user id."""
    try:
        model._meta.pk.to_python(text)
    except ValidationError:
        return False
    return bool(text)
