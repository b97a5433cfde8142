"""``make run`` from nothing: its output suffices to store a state; a second run keeps all data."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra_service import __version__
from infra_service.quickstart import _write_secrets, main
from tests.e2e.terraform import BINARY, Terraform
from tests.support.installation import ROOT
from tests.support.quickstart import Quickstart
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.both

ONE = 'resource "terraform_data" "a" { input = "first" }'


#: As on Debian without python3-venv: an environment without pip, and an error.
NO_PIP = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
{python} -m venv --without-pip "$3"
exit 1
"""


def test_incomplete_environment_is_removed(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(NO_PIP.format(python=sys.executable))
    python.chmod(0o755)
    (tmp_path / "requirements.txt").touch()
    make = ["make", "-f", ROOT / "Makefile", f"PYTHON={python}", ".venv/run"]

    done = subprocess.run(make, cwd=tmp_path, capture_output=True, check=False)

    assert done.returncode == 2
    assert not (tmp_path / ".venv").exists(), "the next run would expect pip there"


@pytest.fixture
def quickstart(tmp_path: Path) -> Iterator[Quickstart]:
    (tmp_path / "place").mkdir()
    place = LiveServer(tmp_path / "place")
    one = Quickstart(place, tmp_path / "new" / "var")
    yield one
    one.close()
    place.close()


def pasted(tmp_path: Path, printed: str) -> Terraform:
    """Return a Terraform directory with the printed text, as pasted by a person."""
    block = re.search(r"^terraform \{\n.*?^\}$", printed, re.MULTILINE | re.DOTALL)
    export = re.search(r"^ *export (.*)$", printed, re.MULTILINE)
    assert block is not None
    assert export is not None
    tf = Terraform(tmp_path / "tf", "", "")
    tf.environment |= dict(pair.split("=", 1) for pair in shlex.split(export[1]))
    (tf.directory / "backend.tf").write_text(block[0])
    tf.write(ONE)
    return tf


def resources(quickstart: Quickstart, token: str) -> bytes:
    return quickstart.place.request("GET", "/api/v1/resources", token=token).body


def indexers_of(var: Path) -> list[int]:
    """Return the processes that keep the index of the installation with this ``VAR_DIR``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            is_indexer = b"manage.py\0index_states" in (process / "cmdline").read_bytes()
            if is_indexer and str(var).encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def test_a_port_is_not_shared(quickstart: Quickstart, tmp_path: Path) -> None:
    """Two services on the same port would each get some of the requests."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", quickstart.place.port))
        listener.listen()
        refused = subprocess.run(
            quickstart.command,
            cwd=ROOT,
            env=quickstart.environment,
            check=False,
            capture_output=True,
            text=True,
        )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Address already in use" in refused.stderr
    assert not quickstart.var.exists()


@pytest.mark.parametrize("port", ["80000", "0", "-1", "x", "8 0", "", "9" * 5000, "²"])
def test_invalid_port_is_rejected(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["quickstart", f"--port={port}"])

    with pytest.raises(SystemExit) as refused:
        main()

    message = f"PORT={port} is not a port (1 to 65535). Example: PORT=8001 make run"
    assert refused.value.code == message


@pytest.mark.parametrize(("name", "value", "message"), [
    ("DATABASE_URL", "postgres://x:x@127.0.0.1:1/x", "Check DATABASE_URL and the database"),
    ("RATE_LIMIT_TOKEN", "many", "RATE_LIMIT_TOKEN"),
])  # fmt: skip
def test_an_unusable_setting_is_an_error(
    quickstart: Quickstart, name: str, value: str, message: str
) -> None:
    refused = subprocess.run(
        quickstart.command,
        cwd=ROOT,
        env={**quickstart.environment, name: value},
        check=False,
        capture_output=True,
        text=True,
    )

    assert refused.returncode == 1
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_secrets_are_on_the_disk_before_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def recording(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recording)
    _write_secrets(tmp_path)

    assert synced == [str(tmp_path / "service.env.new"), str(tmp_path)]
    assert [line.split("=")[0] for line in (tmp_path / "service.env").read_text().splitlines()] == [
        "SECRET_KEY", "STATE_ENCRYPTION_KEYS",
    ]  # fmt: skip


def test_starts_with_a_closed_error_output(quickstart: Quickstart) -> None:
    quickstart.command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *quickstart.command]

    assert "The service listens on" in quickstart.start()


def test_failed_output_does_not_lose_the_first_secrets(quickstart: Quickstart) -> None:
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            quickstart.command, cwd=ROOT, env=quickstart.environment, stdout=full, check=False
        )
    assert failed.returncode == 1

    assert re.search(r"isp_\w{38}", quickstart.start())


def test_a_background_command_that_ended_is_started_again(quickstart: Quickstart) -> None:
    """A killed command is restarted; when the server's pipe is closed, all of it ends."""
    environment = quickstart.place.environment
    process = subprocess.Popen(
        [sys.executable, "-m", "infra_service.quickstart_workers", "index_states"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    var = Path(environment["VAR_DIR"])
    with process:
        wait_until(lambda: indexers_of(var))
        (first,) = indexers_of(var)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: indexers_of(var) not in ([], [first]))
        _, output = process.communicate(timeout=60)

    assert process.returncode == 0
    assert b"index_states exited with status -9 and is restarted" in output
    assert indexers_of(var) == []


@pytest.mark.terraform
@pytest.mark.skipif(BINARY is None, reason="neither terraform nor tofu is on the PATH")
def test_quickstart_stores_a_state_and_can_be_repeated(
    quickstart: Quickstart, tmp_path: Path
) -> None:
    first = quickstart.start()
    tokens = set(re.findall(r"isp_\w{38}", first))
    assert len(tokens) == 1
    assert f"http://127.0.0.1:{quickstart.place.port}/admin/" in first
    secrets = quickstart.var / "service.env"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert stat.S_IMODE(quickstart.var.stat().st_mode) == 0o700
    kept = secrets.read_text()

    tf = pasted(tmp_path, first)
    tf.run("init")
    assert "Resources: 1 added" in tf.apply().out
    password = tf.environment["TF_HTTP_PASSWORD"]
    # The indexer starts and ends with it.
    wait_until(lambda: b'"terraform_data.a"' in resources(quickstart, password))
    assert indexers_of(quickstart.var)
    assert quickstart.interrupt() == 0
    wait_until(lambda: not indexers_of(quickstart.var))

    again = quickstart.start()
    assert "Existing data is kept." in again
    assert "Shown only once" not in again
    assert "isp_" not in again
    assert secrets.read_text() == kept
    tf.run("plan", "-detailed-exitcode", code=0)  # the old token, and the existing state
    (address,) = re.findall(r'^ *address *= "(.*)"$', first, re.MULTILINE)
    assert re.findall(r"http://\S*/state/\S*", again) == [address]

    # The printed instructions for a new token work.
    command = re.search(r"manage\.py issue_token .*\\\n.*", again)
    assert command is not None
    arguments = shlex.split(command[0].replace("\\\n", ""))
    environment = {**quickstart.environment, "DJANGO_SETTINGS_MODULE": "infra_service.settings"}
    issued = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    tf.environment["TF_HTTP_PASSWORD"] = issued.stdout.split()[-1]
    tf.write(ONE.replace("first", "changed"))
    assert "Resources: 0 added, 1 changed" in tf.apply().out
    assert quickstart.interrupt() == 0
    log = quickstart.place.log.read_text()
    event = next(json.loads(line) for line in log.splitlines() if line.startswith("{"))
    assert (event["event"], event["version"]) == ("starting", __version__)
    assert event["bind"] == f"127.0.0.1:{quickstart.place.port}"
    assert "Traceback" not in log
    assert "isp_" not in log
