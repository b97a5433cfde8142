"""Rows that other connections delete while a page is read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from django.db.models import Q

from infra_service.lib.database.bounded_pages import NamedBy, read_page, reading
from infra_service.lib.database.bounded_pages.bounded_tables import rows_of
from infra_service.lib.database.bounded_pages.conditions import conditions_of
from infra_service.lib.database.bounded_pages.indexes import walk
from states.models import Component, Environment, State
from tests.support.committed import at_once, db  # noqa: F401 - commits
from workloads.api import images
from workloads.models import ClusterImage

pytestmark = pytest.mark.both

MOST = 4


@pytest.fixture(autouse=True)
def _parts_of_four_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((reading, "MOST_ROWS"), (reading, "_LEAST_ROWS"), (images, "MOST_ROWS")):
        monkeypatch.setattr(module, name, MOST)
    monkeypatch.setattr(reading, "_DEARER_BY_KEY", 1)


def delete_elsewhere(row: Any) -> None:
    at_once([lambda: type(row)._base_manager.filter(pk=row.pk).delete()])


def environments() -> tuple[Any, Any]:
    """Return environments without an index for their condition, of which the last matches."""
    rows = [Environment.objects.create(require_lock=number == MOST) for number in range(MOST + 2)]
    return Environment.objects.filter(require_lock=True), rows


def named_components() -> tuple[Any, Any]:
    """Return the components of an environment, found by its states."""
    environment = Environment.objects.create()
    rows = [Component.objects.create(name="b") for _ in range(3 * MOST)]
    rows[MOST].name = "abc"
    rows[MOST].save()
    for row in rows:
        State.objects.create(component=row, environment=environment)
    states = State.objects.filter(environment=environment, deleted_at=None)
    condition = Q(NamedBy(states, "component_id"), name__filterlang_matches=contains("bc"))
    return Component.objects.filter(condition), list(states.order_by("component_id"))


def contains(text: str) -> Any:
    from filterlang.lookups import Piece  # noqa: PLC0415 - compiles the grammar

    return Piece(text)


@pytest.mark.parametrize("make", [environments, named_components])
def test_each_match_is_on_a_page(db: None, make: Any) -> None:  # noqa: F811
    queryset, rows = make()
    (match,) = queryset

    def read(part: Any, order: Sequence[str], limit: int) -> list[Any]:
        found = reading.instances(part, order, limit)
        delete_elsewhere(rows[0])
        return found

    page = read_page(queryset, key=("id",), position=None, size=2, read=read)
    found = page.rows
    while page.position is not None:
        page = read_page(queryset, key=("id",), position=page.position, size=2)
        found += page.rows

    assert found == [match]


def test_the_end_of_a_scan_is_read_from_the_database_of_the_list() -> None:
    states = State.objects.using("replica")
    path = walk(State, conditions_of(states.query), ("id",))

    assert rows_of(path, states).db == "replica"


def test_each_image_is_on_a_page(
    db: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = uuid.uuid4()
    rows = [
        ClusterImage.objects.create(cluster_id=cluster, repository=f"r{number}", workloads=1)
        for number in range(MOST + 2)
    ]
    names = [row.repository for row in rows]

    def after_a_deletion(*args: Any) -> Any:
        if rows:
            delete_elsewhere(rows[0])
            rows.clear()
        return rows_of(*args)

    monkeypatch.setattr(images, "rows_of", after_a_deletion)
    found, position = images.read_images(ClusterImage.objects.all(), None, 100)
    while position is not None:
        page, position = images.read_images(ClusterImage.objects.all(), position, 100)
        found += page

    assert [image["repository"] for image in found] == names
