"""Housekeeping: parts fail independently, one process at a time, and old rows are deleted."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from apikeys.actions import expired
from apikeys.models import AccessToken, ApiKey, AuditEvent, UsedAssertion, User
from infra_service.lib.api.identifiers import uuid7_of
from infra_service.lib.database import batches
from infra_service.models import LEASE, HousekeepingPart
from infra_service.operations.housekeeping import PARTS, metrics, parts, running
from infra_service.operations.housekeeping.running import Status, run_part
from tests.support.commands import on_database_of
from tests.support.installation import ROOT
from tests.support.multiplied import multiply
from tests.support.server import LiveServer

DAY = dt.timedelta(days=1)


def housekeeping(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("housekeeping", "--json", *options, stdout=out)
    outcomes: dict[str, Any] = json.loads(out.getvalue())
    return outcomes


def failing(*options: str) -> tuple[dict[str, Any], str]:
    out = StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("housekeeping", "--json", *options, stdout=out)
    return json.loads(out.getvalue()), str(raised.value)


@pytest.fixture
def rows(db: None) -> None:
    """The rows that the migration makes, which a test that empties the database takes away."""
    made = [HousekeepingPart(name=name) for name in PARTS]
    HousekeepingPart.objects.bulk_create(made, ignore_conflicts=True)


@pytest.fixture
def replace(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], Iterator[int]]], None]:
    def put(name: str, part: Callable[[], Iterator[int]]) -> None:
        monkeypatch.setattr(running, "PARTS", {**running.PARTS, name: part})

    return put


def token(owner: User, name: str, ends: dt.datetime | None, **fields: Any) -> AccessToken:
    return AccessToken.objects.create(
        created_by=owner,
        name=name,
        kind="SERVICE",
        scopes=["state:read"],
        digest=uuid.uuid4().bytes * 2,
        created_at=timezone.now() - 400 * DAY,
        expires_at=ends,
        **fields,
    )


def test_expired_tokens_are_deleted(
    operator: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired, "BATCH", 3)
    settings.ACCESS_TOKENS_KEPT_DAYS = 10
    now = timezone.now()
    key = ApiKey.objects.create(
        created_by=operator, name="key", scopes=["state:read"], digest=b"k" * 32,
        created_at=now - 400 * DAY, expires_at=now - 100 * DAY,
    )  # fmt: skip
    for number in range(8):
        token(operator, "long ago", now - 11 * DAY, api_key=key if number % 2 else None)
    for _ in range(4):
        token(operator, "revoked long ago", None, revoked_at=now - 11 * DAY)
    token(operator, "both", now + DAY, revoked_at=now - 11 * DAY)
    for name, ends, fields in (
        ("never", None, {}),
        ("valid", now + DAY, {}),
        ("ended lately", now - 9 * DAY, {}),
        ("revoked lately", now - 9 * DAY, {"revoked_at": now - 9 * DAY}),
    ):
        token(operator, name, ends, **fields)

    outcome = housekeeping("--only", "tokens")

    assert outcome["tokens"]["removed"] == 13
    assert set(AccessToken.objects.values_list("name", flat=True)) == {
        "never", "valid", "ended lately", "revoked lately",
    }  # fmt: skip
    # Keys stay, and the audit log has the number of deleted rows, in small transactions.
    assert ApiKey.objects.get() == key
    removed = AuditEvent.objects.filter(action="access_token.remove").order_by("id")
    assert [event.details["tokens"] for event in removed] == [3, 3, 2, 3, 2]
    assert {event.actor_name for event in removed} == {"command housekeeping"}
    assert housekeeping("--only", "tokens")["tokens"]["removed"] == 0


def test_audit_log_names_the_deleted_token(operator: User) -> None:
    """The event contains the ID, name, kind and owner of the deleted token."""
    out = StringIO()
    call_command(
        "issue_token", "--user", "operator", "--name", "ci", "--scopes", "state:read",
        "--kind", "service", "--json", stdout=out,
    )  # fmt: skip
    issued = json.loads(out.getvalue())["id"]
    AccessToken.objects.filter(pk=issued).update(revoked_at=timezone.now() - 100 * DAY)
    assert housekeeping("--only", "tokens")["tokens"]["removed"] == 1

    event = AuditEvent.objects.get(resource_id=issued)
    recorded = {name: event.details[name] for name in ("name", "kind", "owner")}
    assert recorded == {"name": "ci", "kind": "SERVICE", "owner": "operator"}


def test_expired_sessions_are_deleted(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REMOVED", 2)
    for number, days in enumerate((-3, -2, -1, 1)):
        Session.objects.create(
            session_key=str(number), session_data="", expire_date=timezone.now() + days * DAY
        )

    assert housekeeping("--only", "sessions")["sessions"]["removed"] == 3
    assert [session.session_key for session in Session.objects.all()] == ["3"]


def test_old_events_are_deleted_only_with_an_archive_directory(
    db: None, settings: Any, tmp_path: Path
) -> None:
    old = timezone.now() - 401 * DAY
    AuditEvent.objects.create(
        id=uuid7_of(old), action="test.done", resource_id="old", occurred_at=old
    )
    assert housekeeping("--only", "events")["events"]["removed"] == 0

    settings.AUDIT_ARCHIVE_DIR = str(tmp_path)
    assert housekeeping("--only", "events")["events"]["removed"] == 1
    assert not AuditEvent.objects.filter(resource_id="old").exists()


def test_events_that_another_process_archives_are_not_reported_as_done(
    db: None, settings: Any, tmp_path: Path
) -> None:
    """The unit that archives as the owner has ``AUDIT_ARCHIVE_DIR``; the other unit does not."""
    old = timezone.now() - 401 * DAY
    AuditEvent.objects.create(
        id=uuid7_of(old), action="test.done", resource_id="old", occurred_at=old
    )
    settings.AUDIT_ARCHIVE_DIR = str(tmp_path)
    assert housekeeping("--only", "events")["events"]["status"] == "done"
    archived = HousekeepingPart.objects.get(name="events")

    settings.AUDIT_ARCHIVE_DIR = ""

    assert housekeeping("--only", "events")["events"]["status"] == "held"
    assert HousekeepingPart.objects.get(name="events").succeeded_at == archived.succeeded_at


@pytest.mark.parametrize(("days", "status"), [(29, "held"), (31, "done")])
def test_events_are_done_again_a_month_after_archiving_was_turned_off(
    rows: None, days: int, status: str
) -> None:
    AuditEvent.objects.create(
        action="audit.archive",
        actor_name="command housekeeping",
        resource_id="archive",
        occurred_at=timezone.now() - days * DAY,
    )

    assert housekeeping("--only", "events")["events"]["status"] == status


def test_all_parts_are_done(db: None) -> None:
    outcomes = housekeeping()

    assert list(outcomes) == list(PARTS)
    assert {outcome["status"] for outcome in outcomes.values()} == {"done"}
    assert set(HousekeepingPart.objects.values_list("name", flat=True)) == set(PARTS)


def test_a_failure_stops_no_other_part(rows: None, replace: Any) -> None:
    def broken() -> Iterator[int]:
        yield 2
        raise OSError("the disk is full")

    replace("objects", broken)
    before = {part.name: part.succeeded_at for part in HousekeepingPart.objects.all()}

    outcomes, message = failing()

    assert message == "failed: objects"
    assert outcomes["objects"]["error"] == "OSError: the disk is full"
    assert [o["status"] for n, o in outcomes.items() if n != "objects"] == ["done"] * 8
    after = {part.name: part for part in HousekeepingPart.objects.all()}
    assert after["objects"].succeeded_at == before["objects"]
    assert after["sessions"].succeeded_at > before["sessions"]
    # Earlier removals count, and the lease is released.
    assert (after["objects"].removed, after["objects"].holder) == (2, None)


def test_a_failure_stops_no_other_work_of_its_part(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_options: Any) -> Iterator[int]:
        yield 1
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(parts, "remove_expired_tokens", broken)
    used = {"digest": b"d" * 32, "expires_at": timezone.now() - DAY}
    UsedAssertion.objects.create(**used)

    outcomes, error = failing("--only", "tokens")

    assert (outcomes["tokens"]["status"], outcomes["tokens"]["removed"]) == ("failed", 2)
    assert outcomes["tokens"]["error"] == "RuntimeError: unforeseen"
    assert error == "failed: tokens"
    assert not UsedAssertion.objects.exists()


def test_part_runs_in_a_single_process_at_a_time(db: None) -> None:
    holder = HousekeepingPart.objects.claim("tokens")
    assert holder is not None
    assert HousekeepingPart.objects.claim("tokens") is None
    outcomes = housekeeping()
    assert outcomes["tokens"]["status"] == "held"
    assert outcomes["sessions"]["status"] == "done"

    # The former holder was killed, and its lease has expired.
    HousekeepingPart.objects.filter(name="tokens").update(
        leased_until=timezone.now() - dt.timedelta(seconds=1)
    )
    assert housekeeping("--only", "tokens")["tokens"]["status"] == "done"
    # The former holder can neither continue nor take the lease back.
    assert not HousekeepingPart.objects.keep("tokens", holder, 1)


def test_lease_from_before_the_clock_was_set_back_is_free(db: None) -> None:
    assert HousekeepingPart.objects.claim("tokens") is not None
    HousekeepingPart.objects.update(leased_until=timezone.now() + dt.timedelta(days=365))

    assert HousekeepingPart.objects.claim("tokens") is not None
    assert HousekeepingPart.objects.claim("tokens") is None


def test_process_without_the_lease_stops(db: None, replace: Any) -> None:
    def slow() -> Iterator[int]:
        yield 1
        HousekeepingPart.objects.filter(name="tokens").update(holder=uuid.uuid4())
        yield 1
        raise AssertionError("another process does this now")

    replace("tokens", slow)
    outcome = run_part("tokens", most_seconds=100, stop=threading.Event())

    assert (outcome.status, outcome.removed) == (Status.HELD, 2)


def test_a_part_is_bounded_in_time(rows: None, replace: Any) -> None:
    stop = threading.Event()

    def endless() -> Iterator[int]:
        while True:
            yield 1

    replace("tokens", endless)
    before = HousekeepingPart.objects.get(name="tokens").succeeded_at
    assert run_part("tokens", most_seconds=0, stop=stop).status is Status.STOPPED
    stop.set()
    outcome = run_part("tokens", most_seconds=1000, stop=stop)

    assert (outcome.status, outcome.removed) == (Status.STOPPED, 1)
    # The part is incomplete, so the alert continues to count.
    assert HousekeepingPart.objects.get(name="tokens").succeeded_at == before


def test_metrics_are_exported(rows: None) -> None:
    HousekeepingPart.objects.filter(name="tokens").update(removed=7, seconds=1.5)

    found = {metric.name: metric for metric in metrics.HousekeepingCollector().collect()}

    assert {name: len(metric.samples) for name, metric in found.items()} == {
        "infra_housekeeping_last_success_timestamp_seconds": 9,
        "infra_housekeeping_duration_seconds": 9,
        "infra_housekeeping_removed": 9,
        "infra_partitions_ready": int(connection.vendor == "postgresql"),
    }
    of_tokens = [
        sample.value
        for metric in found.values()
        for sample in metric.samples
        if sample.labels == {"part": "tokens"}
    ]
    assert abs(of_tokens[0] - timezone.now().timestamp()) < 10 * DAY.total_seconds()
    assert of_tokens[1:] == [1.5, 7.0]


@pytest.mark.parametrize("options", [("--interval", "0"), ("--max-seconds", "0")])
def test_bad_options_are_rejected(options: tuple[str, str]) -> None:
    with pytest.raises(CommandError):
        call_command("housekeeping", *options)


def fill() -> None:
    """Make 20,000 tokens that ended a year ago."""
    owner, long_ago = User.objects.create(username="owner"), timezone.now() - 400 * DAY
    AccessToken.objects.create(
        created_by=owner, name="old", kind="SERVICE", scopes=["state:read"],
        digest=b"0" * 32, created_at=long_ago - DAY, expires_at=long_ago,
    )  # fmt: skip
    binary = AccessToken._meta.get_field("digest").db_type(connection)
    digest = f"CAST('{'0' * 27}' || (10000 + n) AS {binary})"
    multiply(AccessToken, 20_000, id="'tok-' || n", digest=digest)


def left() -> int:
    return AccessToken.objects.filter(name="old").count()


def test_a_killed_run_is_continued_and_a_watch_ends(tmp_path: Path, django_db_blocker: Any) -> None:
    server = LiveServer(tmp_path)
    command = [sys.executable, "manage.py", "housekeeping", "--only", "tokens", "--json"]
    # Empty means unset, so that piped output is buffered, as for most operators.
    run: dict[str, Any] = {"cwd": ROOT, "env": {**server.environment, "PYTHONUNBUFFERED": ""}}

    def there(work: Callable[[], Any]) -> Any:
        with django_db_blocker.unblock():
            return on_database_of(server, work)

    def kill_at_the_first_row_that_is_gone() -> int:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, **run) as process:
            while process.poll() is None and left() == 20_000:
                time.sleep(0.005)
            process.kill()
        return left()

    try:
        server.prepare()
        there(fill)
        # 1. Killed in the middle of it.
        assert 0 < there(kill_at_the_first_row_that_is_gone) < 20_000
        # 2. The next process skips the part until the lease has expired.
        held = subprocess.run(command, check=True, stdout=subprocess.PIPE, **run)
        assert json.loads(held.stdout)["tokens"]["status"] == "held"
        there(lambda: HousekeepingPart.objects.update(leased_until=None))
        # 3. A watching process does the rest and stops at the signal.
        watch = subprocess.Popen([*command, "--watch"], stdout=subprocess.PIPE, **run)
        assert watch.stdout is not None
        outcome = json.loads(watch.stdout.readline())["tokens"]
        assert (outcome["status"], there(left)) == ("done", 0)
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(60) == 0
        watch.stdout.close()
    finally:
        server.close()


def test_the_lease_is_longer_than_its_notes() -> None:
    assert LEASE.total_seconds() > 5 * running._NOTE_SECONDS
