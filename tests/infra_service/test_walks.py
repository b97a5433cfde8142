"""Pages of lists in an order that changes while they are read."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from django.urls import get_resolver
from django.utils import timezone

from apikeys.actions import create_api_key
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, User
from infra_service.lib.api.orders import orders_of
from infra_service.list_checks import lists
from states.models import Component, Environment, State
from tests.conftest import ApiClient, ClientWith
from workloads.models import Cluster, Workload

pytestmark = pytest.mark.both

ITEMS = 24
HEALTH = ("HEALTHY", "DEGRADED", "ERROR", "WORKLOAD_HEALTH_STATUS_UNSPECIFIED")


class Walk(NamedTuple):
    """A list, its rows, and a function that moves a row in the order."""

    path: str
    plural: str
    rows: Any
    move: Callable[[Any, random.Random], dict[str, Any]]
    #: A client for this list, if it needs its own.
    client: ApiClient | None = None


def touch(_row: Any, _rng: random.Random) -> dict[str, Any]:
    return {"updated_at": timezone.now()}


def use(_row: Any, _rng: random.Random) -> dict[str, Any]:
    return {"last_used_at": timezone.now()}


def rename(_row: Any, rng: random.Random) -> dict[str, Any]:
    return {"name": f"{rng.random():.6f}"}


def change_health(_row: Any, rng: random.Random) -> dict[str, Any]:
    return {"health_status": rng.choice(HEALTH)}


def states() -> Walk:
    environment = Environment.objects.create(name="e")
    for number in range(ITEMS):
        component = Component.objects.create(name=f"c{number}")
        State.objects.create(component=component, environment=environment)
    return Walk("/api/v1/states", "states", State.objects, touch)


def lock(row: Any, _rng: random.Random) -> dict[str, Any]:
    """Unlock a locked state, and lock another one."""
    if row.lock_id is not None:
        return {"lock_id": None, "lock_info": None, "lock_acquired_at": None}
    return {"lock_id": uuid.uuid4(), "lock_info": {}, "lock_acquired_at": timezone.now()}


def locked_states() -> Walk:
    walk = states()
    for row in walk.rows.order_by("pk")[::2]:
        walk.rows.filter(pk=row.pk).update(**lock(row, random.Random(0)))
    return walk._replace(move=lock)


def components() -> Walk:
    for number in range(ITEMS):
        Component.objects.create(name=f"{number / ITEMS:.6f}")
    return Walk("/api/v1/components", "components", Component.objects, rename)


def clusters() -> Walk:
    for number in range(ITEMS):
        Cluster.objects.create(name=f"{number / ITEMS:.6f}")
    return Walk("/api/v1/clusters", "clusters", Cluster.objects, rename)


def workloads_of(number: int) -> Cluster:
    cluster = Cluster.objects.create(name=f"of-workloads-{uuid.uuid4().hex}")
    for at in range(number):
        Workload.objects.create(
            cluster=cluster, namespace=f"n{at % 3}", name=f"w{at}", kind="Deployment",
            health_status=HEALTH[at % 4], observed_at=timezone.now(), replicas_desired=1,
            replicas_ready=1, replicas_available=1, cpu_requests_millicores=0,
            cpu_limits_millicores=0, memory_requests_bytes=0, memory_limits_bytes=0,
        )  # fmt: skip
    return cluster


def workloads() -> Walk:
    cluster = workloads_of(ITEMS)
    path = f"/api/v1/clusters/{cluster.pk}/workloads"
    return Walk(path, "workloads", Workload.objects, change_health)


def fleet() -> Walk:
    for _ in range(3):
        workloads_of(ITEMS // 3)
    return Walk("/api/v1/workloads", "workloads", Workload.objects, change_health)


def api_keys() -> Walk:
    """Return the list of keys; the reader's own use is recent enough not to move it."""
    user = User.objects.get(username="operator")
    for number in range(ITEMS):
        key, secret = create_api_key(
            user_id=user.pk, name=f"k{number}", scopes=["apikey:read"], expires_at=None,
            actor=Actor(name="test"),
        )  # fmt: skip
        if number % 2:
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now())
    client = ApiClient(secret, AccessToken())
    return Walk("/v1/api-keys", "api_keys", ApiKey.objects, use, client)


#: How often a page may have an item that moves: at least, and at most.
AT_LEAST_ONCE, AT_MOST_ONCE, ANY = (1, None), (0, 1), (0, None)
MOVING = {
    "states by updated_at": (states, "updated_at", AT_LEAST_ONCE),
    "states by updated_at desc": (states, "updated_at desc", AT_MOST_ONCE),
    "states by lock age": (locked_states, "lock.acquired_at", ANY),
    "states by lock age desc": (locked_states, "lock.acquired_at desc", ANY),
    "components by name": (components, "name", ANY),
    "components by name desc": (components, "name desc", ANY),
    "clusters by name": (clusters, "name", ANY),
    "workloads by health": (workloads, "health_status", ANY),
    "workloads by health desc": (workloads, "health_status desc", ANY),
    "fleet": (fleet, "", ANY),
    "keys by use": (api_keys, "last_used_at", ANY),
    "keys by use desc": (api_keys, "last_used_at desc", ANY),
}
#: The same changes in orders where they move nothing.
STABLE = {
    "states by id": (states, "id"),
    "locked states by id": (locked_states, "id"),
    "components by id desc": (components, "id desc"),
    "clusters by id": (clusters, "id"),
    "keys by id": (api_keys, "id"),
    "workloads by namespace": (workloads, "namespace"),
    "workloads by kind desc": (workloads, "kind desc"),
}


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "cluster:read")


def pages(client: ApiClient, walk: Walk, order: str) -> Iterator[list[str]]:
    """Yield the ids of each page; the caller changes data in between."""
    query = {"page_size": 3, **({"order_by": order} if order else {})}
    token = ""
    while True:
        answer = (walk.client or client).get(walk.path, {**query, "page_token": token}).json()
        yield [item["id"] for item in answer[walk.plural]]
        token = answer["next_page_token"]
        if not token:
            return


def walked(client: ApiClient, walk: Walk, order: str, seed: int) -> tuple[Counter[str], set[str]]:
    """Return how often each item was on a page, and which items changed meanwhile."""
    rng = random.Random(seed)
    ids = [str(pk) for pk in walk.rows.values_list("pk", flat=True)]
    movable = rng.sample(ids, len(ids) // 2)
    seen: Counter[str] = Counter()
    moved: set[str] = set()
    for number, page in enumerate(pages(client, walk, order)):
        seen.update(page)
        # A walk in an order that items join at its end ends when they cease to.
        for pk in rng.sample(movable, 2) if number < ITEMS else ():
            row = walk.rows.filter(pk=pk)
            row.update(**walk.move(row.get(), rng))
            moved.add(pk)
    return seen, moved


@pytest.mark.slow
@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("seed", range(3))
def test_walk_in_a_changing_order_is_complete(name: str, seed: int, client: ApiClient) -> None:
    make, order, (least, most) = MOVING[name]
    walk = make()
    seen, moved = walked(client, walk, order, seed)
    expected = {str(pk) for pk in walk.rows.values_list("pk", flat=True)}

    assert {seen[pk] for pk in expected - moved} == {1}
    assert all(least <= seen[pk] <= (most or seen[pk]) for pk in moved)
    assert seen.keys() <= expected


@pytest.mark.parametrize("name", STABLE)
def test_walk_in_a_stable_order_is_complete(name: str, client: ApiClient) -> None:
    make, order = STABLE[name]
    walk = make()
    seen, moved = walked(client, walk, order, seed=0)

    assert moved
    assert set(seen.values()) == {1}
    assert len(seen) == walk.rows.count()


def test_the_orders_that_move_are_named() -> None:
    """The columns of all orders: of each that is not named, no value ever changes."""
    fixed = {"id", "number", "occurred_at", "namespace", "kind"}
    for view in lists(get_resolver().url_patterns):
        if not view.pagination_class.takes_order:
            continue
        named = set(getattr(view, "moving_orders", ()))
        orders = {order.partition(" ")[0] for order in orders_of(view)}
        # The name of a workload is a part of its identity.
        free = fixed | ({"name"} if view.page_key[0] == "namespace" else set())
        assert orders - named <= free, view
        assert named <= orders
