"""``archive_audit_events``: the only way to remove audit events, without loss or duplicates."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.archiving import (
    ArchiveError,
    archive,
    archive_next,
    check_archives,
    files,
    removing,
)
from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.api.identifiers import uuid7_of
from infra_service.lib.commandline.private_files import PrivateDirectory
from infra_service.lib.database.compiled import insert
from infra_service.lib.database.months import month_of
from infra_service.lib.database.postgresql.partitions import partitions_of
from tests.support.commands import on_database_of
from tests.support.installation import ROOT
from tests.support.partitions import with_months
from tests.support.server import LiveServer

LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
NEW_YEAR = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
ACTOR = Actor(name="test")


def record_events(count: int, moment: dt.datetime = LONG_AGO, **more: Any) -> None:
    for number in range(count):
        details = {"number": number, "text": "ä\ud800" if connection.vendor == "sqlite" else "ä"}
        insert(
            AuditEvent(
                action="state.push", actor_name="ada", resource_id=f"s{number}",
                occurred_at=moment, **{"id": uuid7_of(moment), "details": details, **more},
            )
        )  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FILE_EVENTS", 4)
    monkeypatch.setattr(archive, "_BATCH", 3)
    monkeypatch.setattr(removing, "_BATCH", 3)


def archive_all(directory: Path) -> list[AuditArchive]:
    archives = []
    while archive := archive_next(before=NEW_YEAR, directory=directory, actor=ACTOR):
        archives.append(archive)
    return archives


def archived(directory: Path) -> list[dict[str, Any]]:
    paths = sorted(directory.glob("*.gz"))
    return [json.loads(text) for path in paths for text in files.events(path)]


def left() -> list[str]:
    old = AuditEvent.objects.filter(occurred_at__lt=NEW_YEAR)
    return [str(pk) for pk in old.order_by("pk").values_list("pk", flat=True)]


@pytest.fixture
def old(db: None) -> list[str]:
    """Ten events of long ago and then two of today."""
    record_events(10)
    ids = left()
    record_events(2, timezone.now())
    return ids


def test_old_events_are_archived_in_order(old: list[str], tmp_path: Path) -> None:
    before = list(AuditEvent.objects.order_by("pk").values())

    archives = archive_all(tmp_path)

    assert [archive.events for archive in archives] == [4, 4, 2]
    assert left() == []
    assert archived(tmp_path) == [json.loads(files.encode(event)) for event in before[:10]]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    # Today's events remain, and the archiving is recorded.
    actions = AuditEvent.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["state.push"] * 2 + ["audit.archive"] * 3
    event = AuditEvent.objects.filter(action="audit.archive").latest("pk")
    assert event.resource_id == "audit-00000003.jsonl.gz"
    assert event.details == {"events": 2, "digest": archives[2].digest}
    assert dict(check_archives(tmp_path)) == {path.name: None for path in tmp_path.iterdir()}


def test_archive_can_be_verified_with_standard_tools(old: list[str], tmp_path: Path) -> None:
    """Each digest is the SHA-256 of the previous digest and the bytes of the event."""
    archive_all(tmp_path)
    script = (
        "p=$(printf %064d 0); gzip -dc audit-*.gz | while IFS= read -r l; do "
        'e=${l#*,\\"event\\":}; e=${e%?}; '
        'p=$(printf %s%s "$p" "$e" | sha256sum | cut -c1-64); '
        'case $l in "{\\"digest\\":\\"$p\\""*) ;; *) echo "$l"; exit 1;; esac; done'
    )

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False, capture_output=True)

    assert (done.returncode, done.stdout) == (0, b"")


def test_young_events_stay(db: None, tmp_path: Path) -> None:
    record_events(1)
    with pytest.raises(ArchiveError, match="older than a day"):
        archive_next(before=timezone.now(), directory=tmp_path, actor=ACTOR)

    # The first that is not from before ends it: the order of the trail is kept.
    millisecond = dt.timedelta(milliseconds=1)
    record_events(1, timezone.now(), id=uuid7_of(LONG_AGO + millisecond))
    record_events(1, LONG_AGO + 2 * millisecond)
    assert [archive.events for archive in archive_all(tmp_path)] == [1]
    assert len(left()) == 1


def test_archive_without_old_events_writes_no_file(db: None, tmp_path: Path) -> None:
    assert archive_all(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


# --- Where it may be killed -----------------------------------------------------------------------


class KilledError(Exception):
    """As if the process had ended here."""


def killed(*_: Any, **__: Any) -> Any:
    raise KilledError


def test_no_link_is_followed(old: list[str], tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    directory = tmp_path / "archives"
    directory.mkdir()
    path = files.path_of(directory, 1)
    for name in (path, path.with_suffix(".part")):
        name.symlink_to(tmp_path / ("missing" if name == path else "precious"))

    assert archive_all(directory)

    assert precious.read_text() == "precious"
    assert not path.is_symlink()
    assert not (tmp_path / "missing").exists()
    assert (path.stat().st_mode & 0o777) == 0o600


def test_directory_writable_by_other_users_is_rejected(old: list[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(ArchiveError, match="Another user owns the directory or can write to it"):
        archive_all(tmp_path)


@pytest.mark.parametrize("place", ["_enter", "remove", "record", "delete", "rename"])
def test_the_next_run_goes_on(
    place: str, old: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        if place == "record":
            patched.setattr(archive.audit, "authorize_and_record", killed)
        elif place == "rename":
            patched.setattr(PrivateDirectory, "rename", killed)
        elif place == "delete":
            removed = iter((True, False))
            whole = AuditEvent.objects.filter

            def second_batch(*args: Any, **given: Any) -> Any:
                if "pk__in" in given and not next(removed):
                    raise KilledError
                return whole(*args, **given)

            patched.setattr(archive, "_is_recorded", lambda _path: True)
            patched.setattr(AuditEvent.objects, "filter", second_batch)
        else:
            patched.setattr(removing if place == "remove" else archive, place, killed)
        with pytest.raises(KilledError):
            archive_all(tmp_path)

    archive_all(tmp_path)

    assert [event["id"] for event in archived(tmp_path)] == old
    assert left() == []
    assert [problem for _name, problem in check_archives(tmp_path)] == [None] * 3


def test_another_trails_file_is_not_taken_for_ours(old: list[str], tmp_path: Path) -> None:
    files.write(files.path_of(tmp_path, 1), 1, files.FIRST, [{"id": old[0], "action": "x"}])

    with pytest.raises(ArchiveError, match="not an archive of this audit log"):
        archive_all(tmp_path)

    assert left() == old


def test_unwritable_directory_is_reported(old: list[str], tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="No such file"):
        archive_all(tmp_path / "nothing")
    (tmp_path / "audit-00000001.jsonl.part").mkdir()
    with pytest.raises(ArchiveError, match="directory"):
        archive_all(tmp_path)
    assert left() == old


def test_concurrent_archiving_is_rejected(old: list[str], tmp_path: Path) -> None:
    with files.only_one(tmp_path), pytest.raises(ArchiveError, match="another process"):
        archive_all(tmp_path)


def test_damaged_file_prevents_deletion(
    old: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(removing, "remove", killed)
        with pytest.raises(KilledError):
            archive_all(tmp_path)
    path = files.path_of(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(ArchiveError):
        archive_all(tmp_path)

    assert left() == old


# --- Detected damage ------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(
        gzip.compress(
            b"".join(change(gzip.decompress(path.read_bytes()).splitlines(keepends=True)))
        )
    )


def made_anew(directory: Path) -> None:
    """Forge a file with valid digests, as an informed attacker would."""
    path = files.path_of(directory, 3)
    previous = files.contents(path).previous
    events = [json.loads(text) for text in files.events(path)]
    events[0]["actor_name"] = "bob"
    files.write(path, 3, previous, events)


def begun_with(directory: Path, header: bytes) -> None:
    """Replace the header of a file."""
    line = files._START + b"0" * 64 + files._MIDDLE + header + files._END
    rewritten(files.path_of(directory, 2), lambda lines: [line, *lines[1:]])


FRAUDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "changed": (
        lambda d: rewritten(
            # In quotes: a digest in the first line may have these letters, too.
            files.path_of(d, 2),
            lambda lines: [line.replace(b'"ada"', b'"bob"') for line in lines],
        ),
        "line 2 differs from the event that was written",
    ),
    "removed": (
        lambda d: rewritten(files.path_of(d, 2), lambda lines: lines[:2] + lines[3:]),
        "line 3 differs from the event that was written",
    ),
    "moved": (
        lambda d: rewritten(files.path_of(d, 2), lambda a: [*a[:2], a[3], a[2], *a[4:]]),
        "line 3 differs from the event that was written",
    ),
    "cut off": (
        lambda d: rewritten(files.path_of(d, 2), lambda lines: lines[:-1]),
        "the file differs from the recorded archive",
    ),
    "spaced": (
        lambda d: rewritten(
            files.path_of(d, 2), lambda lines: [line.replace(b'"}', b'" }') for line in lines]
        ),
        "line 1 differs from the event that was written",
    ),
    "empty": (
        lambda d: rewritten(files.path_of(d, 2), lambda _: []),
        "the file contains no events",
    ),
    "nothing of ours": (
        lambda d: rewritten(files.path_of(d, 2), lambda _: [b"hello\n"]),
        "the file lacks the header of an archive",
    ),
    "not gzip": (lambda d: files.path_of(d, 2).write_bytes(b"x" * 99), "Not a gzipped file"),
    "a file is gone": (lambda d: files.path_of(d, 2).unlink(), "No such file"),
    "the last is gone": (lambda d: files.path_of(d, 3).unlink(), "No such file"),
    "files exchanged": (
        lambda d: (
            files.path_of(d, 1).rename(d / "x"),
            files.path_of(d, 2).rename(files.path_of(d, 1)),
            (d / "x").rename(files.path_of(d, 2)),
        ),
        "the file contains archive 2",
    ),
    "made anew": (made_anew, "the file differs from the recorded archive"),
    "events without an id": (
        lambda d: files.write(files.path_of(d, 2), 2, "", [{"id": 7}]),
        "an event has no id",
    ),
    "nested": (
        lambda d: begun_with(d, b"[" * 100_000),
        "the file lacks the header of an archive",
    ),
    "half a surrogate pair": (
        lambda d: begun_with(d, rb'{"archive":2,"previous":"\ud800"}'),
        "the file lacks the header of an archive",
    ),
    "one more": (
        lambda d: files.write(files.path_of(d, 4), 4, "", [{"id": "x"}]),
        "the database has no record of the archive",
    ),
}


@pytest.mark.both
@pytest.mark.parametrize("fraud", FRAUDS)
def test_a_fraud_is_found(fraud: str, old: list[str], tmp_path: Path) -> None:
    archive_all(tmp_path)
    commit, message = FRAUDS[fraud]
    commit(tmp_path)

    problems = [problem for _name, problem in check_archives(tmp_path) if problem is not None]

    assert message in problems[0]
    out = StringIO()
    with pytest.raises(CommandError, match="differ from the archived events"):
        call_command("archive_audit_events", "--check", str(tmp_path), stdout=out)
    assert message in out.getvalue()


# --- The database's own word ----------------------------------------------------------------------


def refused(statement: str, *parameters: Any) -> None:
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, parameters)


def test_events_outside_a_recorded_archive_cannot_be_deleted(
    old: list[str], tmp_path: Path
) -> None:
    archive_all(tmp_path)

    for table in ("apikeys_auditevent", "apikeys_auditarchive"):
        refused(f"DELETE FROM {table}")
    refused("UPDATE apikeys_auditarchive SET digest = 'x'")
    if connection.vendor == "postgresql":
        refused("TRUNCATE apikeys_auditarchive")


@pytest.mark.both
@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's own words")
def test_sqlite_cannot_replace_events(verb: str, recursive: str, db: None) -> None:
    """REPLACE deletes conflicting rows without running the DELETE trigger."""
    record_events(2)
    names = [field.column for field in AuditEvent._meta.concrete_fields]
    columns = ", ".join(f"'bob' AS {n}" if n == "actor_name" else n for n in names)
    into = f"INTO apikeys_auditevent ({', '.join(names)})"
    other = columns.replace("id", "'0' || substr(id, 2) AS id", 1)
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA recursive_triggers = {recursive}")
    try:
        refused(f"{verb} {into} SELECT {columns} FROM apikeys_auditevent")
        rowid = into.replace("(", "(rowid, ")
        refused(f"{verb} {rowid} SELECT rowid, {other} FROM apikeys_auditevent")
        refused(
            "UPDATE OR REPLACE apikeys_auditevent SET id = (SELECT min(id) FROM apikeys_auditevent)"
        )
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA recursive_triggers = OFF")
    assert set(AuditEvent.objects.values_list("actor_name", flat=True)) == {"ada"}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own words")
def test_replication_role_cannot_change_events(db: None) -> None:
    record_events(1)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        refused("UPDATE apikeys_auditevent SET actor_name = 'bob'")
        refused("DELETE FROM apikeys_auditevent")
        refused("TRUNCATE apikeys_auditevent")


# --- The command ----------------------------------------------------------------------------------


def test_command_archives_events(old: list[str], tmp_path: Path) -> None:
    out, err = StringIO(), StringIO()

    call_command(
        "archive_audit_events", "--before", "2021-01-01", "--to", str(tmp_path), "--json",
        stdout=out, stderr=err,
    )  # fmt: skip
    call_command("archive_audit_events", "--check", str(tmp_path), "--json", stdout=out)

    done, checked = (json.loads(line) for line in out.getvalue().splitlines())
    assert done == {"archives": 3, "events": 10}
    assert checked == {"checked": 3, "problems": []}
    assert err.getvalue().splitlines()[0] == "audit archive 1: 4 events"
    assert AuditEvent.objects.latest("pk").actor_name == "command archive_audit_events"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "."), "--to needs --before"),
        (("--to", ".", "--before", "2999-01-01"), "older than a day"),
        (("--check", "/nonexistent"), "not a directory"),
    ],
)
def test_invalid_arguments_are_reported(arguments: tuple[str, ...], message: str, db: None) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("archive_audit_events", *arguments)


EVENTS = 3000
_MONTHS: Final = 60


def fill(*, months: int) -> None:
    """Add events a millisecond apart, because archives are ordered by ID, in days or months."""
    if months > 1:
        with_months(LONG_AGO, months)
    beginnings = [month_of(LONG_AGO, later=number) for number in range(months)]
    moments = [
        beginning + dt.timedelta(milliseconds=number)
        for beginning in beginnings
        for number in range(EVENTS // months)
    ]
    AuditEvent.objects.bulk_create(
        AuditEvent(
            id=uuid7_of(moment), occurred_at=moment,
            action="state.push", actor_name="ada", resource_id=str(n),
        )
        for n, moment in enumerate(moments)
    )  # fmt: skip


@pytest.mark.parametrize(
    "months",
    [
        1,
        pytest.param(
            _MONTHS,
            marks=pytest.mark.skipif(connection.vendor != "postgresql", reason="partitions"),
        ),
    ],
)
def test_a_run_that_is_killed_is_continued(
    months: int, tmp_path: Path, django_db_blocker: Any
) -> None:
    """SIGKILL at each statement of a real run; then nothing is twice, and nothing is lost."""
    server = LiveServer(tmp_path)
    to = tmp_path / "archives"
    to.mkdir()
    code = (
        "from tests.states import forked; forked.django.setup()\n"
        "from apikeys.archiving import archive; archive.FILE_EVENTS, archive._BATCH = 40, 15\n"
        "forked.main()"
    )
    before = f"{month_of(LONG_AGO, later=months):%Y-%m-%d}"
    archive = ["archive_audit_events", "--before", before, "--to", str(to)]
    kills = list(range(1, 41 if months == 1 else 61))
    runs = [{"arguments": archive, "reads": True, "kill_at": [at]} for at in (*kills, None)]
    try:
        server.prepare()
        with django_db_blocker.unblock():
            on_database_of(server, partial(fill, months=months))
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=server.environment,
            input="\n".join(map(json.dumps, runs)),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        (output,) = server.run_commands(("archive_audit_events", "--check", str(to), "--json"))
        checked = json.loads(output)
        with django_db_blocker.unblock():
            left = on_database_of(server, lambda: len(partitions_of("apikeys_auditevent")))
    finally:
        server.close()

    # The later kills are in the second archive of their run.
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[-9]] * len(kills) + [[0]]
    assert checked["problems"] == []
    assert [event["resource_id"] for event in archived(to)] == [str(n) for n in range(EVENTS)]
    # The first partition, one for the time between, and the present and the next months.
    assert left == (0 if connection.vendor == "sqlite" else 5 if months == 1 else 6)
