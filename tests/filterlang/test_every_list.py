"""Every list of the API selects and orders the same rows as a plain Python evaluator.

The evaluator is the same for SQLite and PostgreSQL, and the test runs on both, so the databases
agree with each other. The lists and their fields come from the OpenAPI document.

``FILTERS=400 SEED=2 pytest tests/filterlang/test_every_list.py`` compares 400 other filters per
list.
"""

from __future__ import annotations

import datetime as dt
import functools
import os
from random import Random
from typing import Any, NamedTuple
from unittest import mock
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db.models import Count, F

from apikeys.actions import create_api_key
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, AuditEvent, Issuer, TrustPolicy, User
from apikeys.scopes import Scope
from filterlang.grammar import MAX_LENGTH
from infra_service.change_history.models import Change
from infra_service.lib.database.bounded_pages import reading
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from infra_service.webhooks.models import Delivery, WebhookEndpoint
from states.models import Application, Component, Environment, State
from tests.conftest import ApiClient, ClientWith
from tests.docs.test_openapi import OPERATIONS
from tests.filterlang.random_filters import FilterField, Reader, Row, random_filter
from tests.states.indexed import index
from tools.bench.bulk_states import load_states
from workloads.managed import managing
from workloads.models import Cluster, Workload, WorkloadImage

NASTY = (
    "we%b",
    "w_b",
    "O'Brien",
    'say "x"',
    "\u00e9",
    "\u00c9",
    "a*b",
    "[w]",
    "C:\\x",
    "Prod",
    " prod",
)
LISTS = {
    name: (path, {parameter["name"]: parameter for parameter in operation["parameters"]})
    for name, (path, _, operation) in OPERATIONS.items()
    if {"filter", "page_token"} <= {p["name"] for p in operation.get("parameters", [])}
}
# tests/states/test_filter_versions.py compares versions.
NOT_COMPARED = {"version"}
FILTERS = int(os.environ.get("FILTERS", "6"))
SEED = os.environ.get("SEED", "1")
pytestmark = pytest.mark.both


class Clients(NamedTuple):
    with_token: ApiClient
    with_key: ApiClient

    def of(self, name: str) -> ApiClient:
        """Return the client that may read this list."""
        accepted = [kind for way in OPERATIONS[name][2]["security"] for kind in way]
        return self.with_key if "apiKey" in accepted else self.with_token


@pytest.fixture
def clients(db: None, client_with: ClientWith, operator: User) -> Clients:
    """Clients that see demo rows in every list, with nulls and extreme values."""
    call_command("seed_demo", states=8, clusters=3, workloads=60, verbosity=0)
    load_states(16, lambda _done: None, first=8)
    index()
    ApiKey.objects.update(created_by=operator)
    AccessToken.objects.update(created_by=operator)
    TrustPolicy.objects.update(owner=operator)
    WebhookEndpoint.objects.update(owner=operator)
    Delivery.objects.update(endpoint=WebhookEndpoint.objects.first())
    vary(Random(1))
    scopes = [scope for scope in Scope if scope.endswith((":read", ":write"))]
    bearer = client_with(*scopes)
    _, secret = create_api_key(
        user_id=operator.pk, name="test", scopes=scopes, expires_at=None, actor=Actor(name="test")
    )
    return Clients(bearer, ApiClient(secret, bearer.token))


def vary(random: Random) -> None:
    """Spread nulls, extreme numbers and texts with wildcards over the rows."""
    # After the creation of the rows, on any day.
    end = dt.datetime(2099, 1, 31, 12, 0, 0, 1, tzinfo=dt.UTC)
    changes: dict[Any, dict[str, tuple[Any, ...]]] = {
        ApiKey: {"name": NASTY, "expires_at": (None, end)},
        AccessToken: {"name": NASTY, "expires_at": (None, end)},
        Issuer: {"name": NASTY},
        TrustPolicy: {"name": NASTY, "expires_at": (None, end), "last_used_at": (None, end)},
        WebhookEndpoint: {"name": NASTY},
        Component: {"application": (None, F("application"))},
        Environment: {"require_lock": (True, False)},
        Workload: {
            "replicas_desired": (0, 1, 2**31 - 1),
            "replicas_ready": (0, 1),
            "cpu_used_millicores": (None, 0, 2**40),
            "memory_used_bytes": (None, 2**63 - 1),
            "health_status": ("HEALTHY", "ERROR"),
        },
    }
    Application.objects.create(name="we%b", slug=None)
    for name in NASTY:
        AuditEvent.objects.create(action="test.vary", actor_id=None, actor_name=name)
    for model, columns in changes.items():
        for row in model._base_manager.values_list("pk", flat=True):
            values = {name: random.choice(choices) for name, choices in columns.items()}
            model._base_manager.filter(pk=row).update(**values)
    for model in (Application, Component, Environment):
        for row in model.objects.order_by("pk"):
            model.objects.filter(pk=row.pk).update(name=random.choice((row.name, "", *NASTY)))
    for row in State.objects.order_by("pk")[::2]:
        lock = UUID(int=row.serial or 1)
        at = end - dt.timedelta(days=random.choice((1, 1, 2, 3)))
        State.objects.filter(pk=row.pk).update(lock_id=lock, lock_info={}, lock_acquired_at=at)
    for workload in Workload.objects.all():
        # The list searches images by this copy of their names.
        copies = WorkloadImage.objects.filter(workload_id=workload.pk)
        copies.update(health_status=workload.health_status)
    for component in Component.objects.all():
        State.objects.filter(component=component).update(application=component.application_id)
    for remembered in (images, application, is_managed, cluster_name):
        remembered.cache_clear()


def plain(name: str) -> Reader:
    return lambda row: [row[name]]


def slug(name: str) -> Reader:
    return lambda row: [row[f"{name}_slug"]]


@functools.cache
def images(workload_id: str, column: str) -> list[Any]:
    return list(
        WorkloadImage.objects.filter(workload_id=workload_id).values_list(column, flat=True)
    )


@functools.cache
def application(component_id: str | None) -> tuple[str | None, str | None, str | None]:
    if component_id is None:  # a change of a workload
        return None, None, None
    columns = ("application_id", "application__slug", "application__name")
    pk, its_slug, name = Component.objects.values_list(*columns).get(pk=component_id)
    return pk and str(pk), its_slug, name


@functools.cache
def is_managed(workload_id: str) -> bool:
    return Workload.objects.filter(managing().is_managed(), pk=workload_id).exists()


@functools.cache
def cluster_name(cluster_id: str | None) -> str | None:
    """Return the name; the change of a resource has no cluster."""
    return None if cluster_id is None else Cluster.objects.get(pk=cluster_id).name


# Fields whose values differ from the values in the rows of the answer.
CONVERTED: dict[str, Reader] = {
    "failing_checks": lambda row: [row["failing_checks"] is not None],
    "scopes": lambda row: [" ".join(row["scopes"])],
}
# Fields that have another name, or no column, in the rows of the answer.
READ: dict[str, Reader] = {
    "component": slug("component"),
    "environment": slug("environment"),
    "application": lambda row: [application(row["component_id"])[1]],
    "application_id": lambda row: [application(row["component_id"])[0]],
    "application_name": lambda row: [application(row["component_id"])[2]],
    "lock.acquired_at": lambda row: [row.get("lock", {}).get("acquired_at")],
    "locked": lambda row: ["lock" in row],
    "frozen": lambda row: ["frozen" in row],
    "managed": lambda row: [is_managed(row["id"])],
    "image.repository": lambda row: images(row["id"], "repository"),
    "image.digest": lambda row: images(row["id"], "digest"),
    "cluster": lambda row: [cluster_name(row["cluster_id"]), row["cluster_id"]],
}


def fields_of(name: str, row: Row) -> list[FilterField]:
    fields = []
    for written, about in LISTS[name][1]["filter"]["x-filter-fields"].items():
        kind = about["type"]
        assert written in {*row, *READ} or kind in {"label", *NOT_COMPARED}, written
        own = plain(written) if written in row else READ.get(written, plain(written))
        read = CONVERTED.get(written, own)
        if kind not in NOT_COMPARED:
            fields.append(
                FilterField(written, kind, about["operators"], about.get("values", ()), read)
            )
    return fields


def compare(clients: Clients, name: str) -> int:
    """Compare random filters; return how many of them selected some rows and not all."""
    client = clients.of(name)
    path, parameters = LISTS[name]
    path = path.replace("{cluster_id}", str(Cluster.objects.first().pk))
    path = path.replace("{webhook_id}", str(WebhookEndpoint.objects.first().pk))
    changed: Any = (
        Change.objects.of_resources()
        .values("state_id")
        .annotate(Count("id"))
        .order_by("-id__count")
    )
    path = path.replace("{state_id}", str(changed[0]["state_id"]))
    plural = path.rpartition("/")[2].replace("-", "_")
    orders = parameters["order_by"]["schema"]["enum"] if "order_by" in parameters else [""]
    random = Random(f"{name} {SEED}")
    all_rows = {
        order: client.items(path, plural, **({"order_by": order} if order else {}))
        for order in orders
    }
    assert all(len(rows) >= 2 for rows in all_rows.values()), name
    fields = fields_of(name, all_rows[orders[0]][0])
    told_apart = 0
    for number in range(10 * FILTERS):
        if number >= FILTERS and told_apart:
            break
        order = random.choice(orders)
        rows = all_rows[order]
        text, selects = random_filter(random, fields, rows)
        if len(text) > MAX_LENGTH:
            continue
        query = {"filter": text, **({"order_by": order} if order else {})}
        # The service reads long lists in parts of thousands of rows.
        most = random.choice((MOST_ROWS, 20))
        with mock.patch.multiple(reading, MOST_ROWS=most, _LEAST_ROWS=most):
            found = client.items(path, plural, page_size=random.choice((30, 100)), **query)
        wanted = [row for row in rows if selects(row)]
        assert [identity(row) for row in found] == [identity(row) for row in wanted], text
        told_apart += 0 < len(wanted) < len(rows)
    return told_apart


def identity(row: Row) -> Any:
    return row.get("id") or (row["repository"], row["tag"], row["digest"])


@pytest.mark.slow
def test_lists_select_the_same_rows_as_python(clients: Clients) -> None:
    for name in LISTS:
        assert compare(clients, name) > 0, name
