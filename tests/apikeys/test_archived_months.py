"""Archiving of whole months on PostgreSQL: a month is dropped after its files are verified."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from apikeys.archiving import ArchiveError, archive, archive_next, check_archives, files, removing
from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.api.identifiers import uuid7_of
from infra_service.lib.commandline.private_files import PrivateDirectory
from infra_service.lib.database.postgresql import partitions
from infra_service.lib.database.postgresql.partitions import partitions_of
from tests.support.partitions import TABLE, with_months

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="about partitions")

JANUARY = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
FEBRUARY = dt.datetime(2020, 2, 1, tzinfo=dt.UTC)
MARCH = dt.datetime(2020, 3, 1, tzinfo=dt.UTC)


def happened(moment: dt.datetime, count: int = 1) -> list[uuid.UUID]:
    """Record events, a second from each to the next, and return their ids."""
    moments = [moment + dt.timedelta(seconds=number) for number in range(count)]
    events = [
        AuditEvent(id=uuid7_of(at), occurred_at=at, action="state.push", resource_id="s")
        for at in moments
    ]
    return [event.pk for event in AuditEvent.objects.bulk_create(events)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FILE_EVENTS", 4)
    monkeypatch.setattr(archive, "_BATCH", 3)
    monkeypatch.setattr(removing, "_BATCH", 3)


@pytest.fixture
def old(db: None) -> list[str]:
    """Two events before January 2020, six in January and three in February."""
    with_months(JANUARY, 2)
    before = happened(JANUARY - dt.timedelta(days=9), 2)
    return list(map(str, [*before, *happened(JANUARY, 6), *happened(FEBRUARY, 3)]))


def archive_all(directory: Path, before: dt.datetime = MARCH) -> list[int]:
    numbers = []
    while made := archive_next(before=before, directory=directory, actor=Actor(name="test")):
        numbers.append(made.events)
    return numbers


def archived(directory: Path) -> list[str]:
    paths = sorted(directory.glob("*.gz"))
    return [str(files.id_of(path, text)) for path in paths for text in files.events(path)]


def left() -> list[str]:
    old = AuditEvent.objects.filter(occurred_at__lt=MARCH).order_by("pk")
    return [str(pk) for pk in old.values_list("pk", flat=True)]


def names() -> list[str]:
    return [partition.name.removeprefix(f"{TABLE}_") for partition in partitions_of(TABLE)]


def test_months_are_archived_and_dropped(old: list[str], tmp_path: Path) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        numbers = archive_all(tmp_path)

    # A file never has events of two partitions.
    assert numbers == [2, 4, 2, 3]
    assert archived(tmp_path) == old
    assert left() == []
    assert names()[:2] == ["first", "2020_03"]
    assert {problem for _name, problem in check_archives(tmp_path)} == {None}
    # Only the events before the first month left row by row.
    deletions = [query["sql"] for query in queries if query["sql"].startswith("DELETE")]
    assert len(deletions) == 1
    first, march = partitions_of(TABLE)[:2]
    assert first.upper == march.lower


def test_month_with_young_events_stays(old: list[str], tmp_path: Path) -> None:
    assert archive_all(tmp_path, FEBRUARY + dt.timedelta(days=20)) == [2, 4, 2]
    assert left() == old[8:]
    assert names()[:2] == ["first", "2020_02"]


def test_event_of_a_dropped_month_goes_to_the_first_partition(
    old: list[str], tmp_path: Path
) -> None:
    archive_all(tmp_path)
    (late,) = happened(JANUARY)

    assert removing.partition_of(late) == partitions_of(TABLE)[0]
    assert archive_all(tmp_path) == [1]
    assert archived(tmp_path) == [*old, str(late)]
    assert left() == []


class KilledError(Exception):
    """As if the process had ended here."""


def killed(*_: Any, **__: Any) -> Any:
    raise KilledError


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (PrivateDirectory, "rename"),
        (archive, "_enter"),
        (archive.audit, "authorize_and_record"),
        (removing, "unarchived"),
        (removing, "drop"),
        # After both tables were dropped, before the end of the transaction.
        (partitions, "create"),
    ],
)
def test_next_run_continues_after_a_kill(
    where: Any, name: str, old: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(where, name, killed)
        with pytest.raises(KilledError):
            archive_all(tmp_path)
    assert set(old) <= {*left(), *archived(tmp_path)}

    archive_all(tmp_path)

    assert archived(tmp_path) == old
    assert left() == []
    assert names()[:2] == ["first", "2020_03"]


def test_event_behind_the_archived_ones_is_archived_too(old: list[str], tmp_path: Path) -> None:
    for _ in range(3):  # up to the end of January, which is not dropped yet
        archive_next(before=MARCH, directory=tmp_path, actor=Actor(name="test"))
    (late,) = happened(JANUARY + dt.timedelta(milliseconds=1))

    assert archive_all(tmp_path) == [1, 3]
    assert sorted(archived(tmp_path)) == sorted([*old, str(late)])
    assert left() == []
    assert names()[:2] == ["first", "2020_03"]


def test_deletions_by_the_previous_release_lose_no_event(old: list[str], tmp_path: Path) -> None:
    """It deletes the events of the last archive row by row."""
    for _ in range(2):
        last = archive_next(before=MARCH, directory=tmp_path, actor=Actor(name="test"))
    assert last is not None
    removing.remove(last, tmp_path)

    assert archive_all(tmp_path) == [2, 3]
    assert archived(tmp_path) == old
    assert left() == []


def test_damaged_file_keeps_the_month(old: list[str], tmp_path: Path) -> None:
    for _ in range(3):
        archive_next(before=MARCH, directory=tmp_path, actor=Actor(name="test"))
    path = files.path_of(tmp_path, 2)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(ArchiveError, match="audit-00000002"):
        archive_all(tmp_path)

    assert left() == old[2:]


def test_month_is_not_dropped_with_an_unexpected_event(old: list[str]) -> None:
    first, january, *_ = partitions_of(TABLE)

    assert not january.drop(5)
    assert not january.drop(6)  # because the first partition has events
    assert left() == old
    assert names()[:2] == ["first", "2020_01"]
    assert first.lower is None


def test_archived_events_are_recorded_before_their_month_leaves(
    old: list[str], tmp_path: Path
) -> None:
    archive_all(tmp_path)

    ranges = AuditArchive.objects.order_by("number").values_list("first_id", "last_id")
    assert [str(pk) for pair in ranges for pk in pair] == [
        old[0], old[1], old[2], old[5], old[6], old[7], old[8], old[10],
    ]  # fmt: skip
