"""The heartbeat of long-running commands, which a hung loop must stop."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from structlog.testing import capture_logs

from infra_service.lib.commandline import heartbeat
from infra_service.lib.commandline.heartbeat import BeatingEvent, Heartbeat
from tests.support.installation import ROOT, Installation
from tests.support.waiting import MAX_WAIT, wait_until

WATCHES = ("index_states", "deliver_events", "housekeeping")


def wait_until_renewed(file: Path) -> None:
    before = file.stat().st_mtime_ns
    wait_until(lambda: file.stat().st_mtime_ns > before)


def stands_still(file: Path) -> bool:
    """Return whether the file is not renewed within a while."""
    with contextlib.suppress(AssertionError):
        before = file.stat().st_mtime_ns
        wait_until(lambda: file.stat().st_mtime_ns > before, 5)
        return False
    return True


def test_a_wait_beats(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    stop = BeatingEvent(Heartbeat(str(file)))
    with contextlib.closing(Looping(stop.wait)):
        try:
            wait_until_renewed(file)
        finally:
            stop.set()


@pytest.mark.slow
def test_a_loop_that_does_not_return_stops_the_heartbeat(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    beating = Heartbeat(str(file), {"one", "other"})
    stops = {name: threading.Event() for name in ("one", "other")}

    def follow(name: str) -> None:
        while not stops[name].wait(0.05):
            beating.beat(name)

    with contextlib.ExitStack() as loops:
        running = {}
        for name, stop in stops.items():
            running[name] = loops.enter_context(contextlib.closing(Looping(follow, name)))
            loops.callback(stop.set)
        wait_until_renewed(file)
        stops["one"].set()
        running["one"].close()
        # Its last turn may count for one more renewal.
        wait_until(lambda: stands_still(file))
        # A loop that has ended is not awaited.
        beating.end("one")
        wait_until_renewed(file)


class Looping:
    """A thread, which is over when this is closed."""

    def __init__(self, work: object, *arguments: str) -> None:
        self._thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        self._thread.start()

    def close(self) -> None:
        self._thread.join(MAX_WAIT)
        assert not self._thread.is_alive()


def test_a_renewal_that_fails_ends_no_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_RENEW_EVERY", 0.0)
    directory = tmp_path / "run"
    directory.mkdir()
    file = directory / "heartbeat"
    beating = Heartbeat(str(file))
    file.unlink()
    directory.rmdir()

    with capture_logs() as logged:
        beating.beat()
        beating.beat()
    directory.mkdir()
    beating.beat()

    assert file.exists()
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("heartbeat_failed", "warning")
    assert line["error"].startswith("--heartbeat-file cannot be written: ")


def test_failed_notification_of_systemd_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))

    with pytest.raises(CommandError, match=r"^NOTIFY_SOCKET .+/none cannot be notified: "):
        Heartbeat(None)


@pytest.mark.parametrize("name", ["notify", "notify@host"])
def test_systemd_is_notified(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = tmp_path / name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(address))
        systemd.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        Heartbeat(None)
        assert systemd.recv(100) == b"WATCHDOG=1"


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    for command in WATCHES:
        with pytest.raises(CommandError, match=r"^--heartbeat-file cannot be written: "):
            call_command(command, "--watch", "--heartbeat-file", str(tmp_path / "none" / "file"))


@pytest.fixture
def installation(tmp_path: Path, committed_template: Installation) -> Iterator[Installation]:
    made = Installation(tmp_path)
    made.copy_database(committed_template)
    yield made
    made.drop_database()


@pytest.mark.parametrize("name", WATCHES)
def test_command_blocked_by_the_database_writes_no_heartbeat(
    name: str, installation: Installation, tmp_path: Path
) -> None:
    """On PostgreSQL, where another session keeps it waiting without an end."""
    url = installation.environment.get("DATABASE_URL", "")
    file = tmp_path / "heartbeat"
    options = ("--watch", "--interval", "1", "--heartbeat-file", str(file))
    running = subprocess.Popen(
        [sys.executable, "manage.py", name, *options],
        cwd=ROOT, env=installation.environment, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(file.exists)
        wait_until_renewed(file)
        if url:
            with psycopg.connect(url) as other:
                tables = other.execute(
                    "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class "
                    "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
                ).fetchone()
                assert tables
                other.execute(f"LOCK TABLE {tables[0]} IN ACCESS EXCLUSIVE MODE")
                wait_until(lambda: stands_still(file))
                assert running.poll() is None
            wait_until_renewed(file)
        running.terminate()
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait()


def fresh(probe: str, file: Path) -> bool:
    """Return whether the documented probe finds the file fresh."""
    documented = re.sub(r"/\S*heartbeat", str(file), probe)
    return subprocess.run(["sh", "-c", documented], check=False).returncode == 0


def test_documented_probe_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    (probe,) = re.findall(r"^\$ (test -n .+ && echo alive)$", page, re.MULTILINE)
    file = tmp_path / "heartbeat"

    assert not fresh(probe, file)
    file.touch()
    assert fresh(probe, file)
    os.utime(file, (time.time() - 601, time.time() - 601))
    assert not fresh(probe, file)
