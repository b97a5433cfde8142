"""Slow, busy and lost responses, redirects, TLS, and interruptions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import psycopg
import pytest

from tests.client.conftest import SomeState
from tests.client.front import (
    Act,
    Front,
    answer,
    dripping,
    lost_after,
    passed,
    running_front,
    silent,
)
from tests.client.running import Client
from tests.e2e.backend import document
from tests.e2e.crowd import large
from tests.support.certificates import self_signed
from tests.support.postgres import free_port
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT, wait_until

HTML = "<html>Bad Gateway</html>"


def refusal(code: int, reason: str, message: str = "Not now.") -> str:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}
    request = {"@type": "type.googleapis.com/google.rpc.RequestInfo", "request_id": "abc"}
    return json.dumps({"error": {"code": code, "message": message, "details": [info, request]}})


BUSY = answer("503 Busy", refusal(503, "DATABASE_BUSY"), Retry_After=1)


@pytest.mark.parametrize(
    "odd",
    [
        answer("503 Busy", refusal(503, "DATABASE_BUSY"), Retry_After="9" * 400),
        answer("200 OK", "-5\r\n{}", Transfer_Encoding="chunked"),
    ],
)
def test_an_impossible_number_in_a_response_is_an_error(
    through_front: Client, front: Front, odd: Act
) -> None:
    front.script.append(odd)

    assert through_front.run("states", code=6).stderr.startswith("infra: ")


@pytest.mark.parametrize(
    "busy",
    [
        BUSY,
        answer("429 Too Many", refusal(429, "RATE_LIMITED"), Retry_After=1),
        answer("502 Bad Gateway", HTML),
        answer("504 Timeout", HTML, Retry_After=formatdate(usegmt=True)),
        answer("503 Unavailable", HTML, Retry_After="soon"),
        # A connection that ends without an answer, and in the middle of an answer.
        lambda _connection: None,
        answer("200 OK", "{", Content_Length=100),
    ],
)
def test_a_busy_service_is_asked_again(through_front: Client, front: Front, busy: Act) -> None:
    front.script.extend([busy, busy])

    done = through_front.run("states", "--limit", "1")

    assert front.lines == ["GET /api/v1/states"] * 3
    assert done.stderr.count("Next attempt in ") == 2


def test_retry_after_is_honoured(through_front: Client, front: Front) -> None:
    front.script.append(BUSY)
    begin = time.monotonic()

    done = through_front.run("states")

    assert time.monotonic() - begin >= 1
    assert "Not now. (request abc) Next attempt in 1.0 s." in done.stderr


def test_a_wait_beyond_the_limit_is_an_error(through_front: Client, front: Front) -> None:
    front.script.append(answer("503 Busy", refusal(503, "MEMORY_UNAVAILABLE"), Retry_After=61))

    assert "Try again in 61 s." in through_front.run("states", code=6).stderr
    assert len(front.requests) == 1
    front.script.extend([answer("503 Busy", refusal(503, "DATABASE_BUSY"), Retry_After=3)] * 9)
    through_front.run("states", "--timeout", "5", code=6)
    assert len(front.requests) == 3


def test_a_full_disk_is_an_error_at_once(through_front: Client, front: Front) -> None:
    front.script.append(answer("503 Full", refusal(503, "DATABASE_FULL")))

    through_front.run("states", code=6)
    assert len(front.requests) == 1


def test_a_change_is_repeated_only_if_the_service_refused_it(
    through_front: Client, front: Front, state: SomeState
) -> None:
    state.push(document(1))
    state_id = through_front.json("show", state.name)["state"]["id"]
    freeze = ("freeze", state_id, "--reason", "upgrade")
    change = f"POST /api/v1/states/{state_id}:freeze"
    look_up = f"GET /api/v1/states/{state_id}"
    front.requests.clear()
    for lost in (lost_after(front), answer("502 Bad Gateway", HTML), answer("503 X", HTML)):
        front.script.extend([passed(front), lost])
        through_front.run(*freeze, code=6)
    assert front.lines == [look_up, change] * 3
    front.requests.clear()
    front.script.extend([passed(front), BUSY])

    through_front.run(*freeze)

    assert front.lines == [look_up, change, change]


def test_a_creation_is_executed_once(tmp_path: Path, front: Front, tokens: dict[str, str]) -> None:
    client = Client(tmp_path, front.url, tokens["key"])
    front.script.append(lost_after(front))
    name = f"once {os.urandom(4).hex()}"

    secret = client.run("keys", "create", "--name", name, "--scopes", "state:read").stdout.strip()

    assert secret.startswith("isk_")
    assert front.lines == ["POST /v1/api-keys"] * 2
    made = [key for key in client.json("keys") if key["name"] == name]
    assert len(made) == 1


def test_a_creation_waits_for_its_first_attempt(
    tmp_path: Path, front: Front, tokens: dict[str, str]
) -> None:
    client = Client(tmp_path, front.url, tokens["key"])
    in_progress = answer("409 Conflict", refusal(409, "IDEMPOTENCY_KEY_IN_USE"), Retry_After=1)
    front.script.extend([lost_after(front), in_progress])
    name = f"waits {os.urandom(4).hex()}"

    secret = client.run("keys", "create", "--name", name, "--scopes", "state:read").stdout.strip()

    assert secret.startswith("isk_")
    assert front.lines == ["POST /v1/api-keys"] * 3
    assert len([key for key in client.json("keys") if key["name"] == name]) == 1


def test_a_push_whose_answer_is_lost_adds_one_version(
    through_front: Client, front: Front, state: SomeState
) -> None:
    (through_front.home / "s.tfstate").write_bytes(document(3))
    through = passed(front)
    # The lookup, the lock, the read and the push; the push and the lock are repeated.
    front.script.extend([through, lost_after(front), through, through, lost_after(front)])

    through_front.run("import", "s.tfstate", state.name)

    shown = through_front.json("show", state.name)
    assert [version["serial"] for version in shown["versions"]] == [3]
    assert "lock" not in shown["state"]


@pytest.mark.parametrize("slow", [silent, dripping])
def test_a_slow_server_is_an_error(
    through_front: Client, front: Front, slow: Callable[[Front], Act]
) -> None:
    front.script.append(slow(front))

    done = through_front.run("states", "--timeout", "1", code=6)

    assert done.stderr == f"infra: {front.url} did not respond within 1 s.\n"
    assert len(front.requests) == 1


def test_a_large_document_extends_the_limit_of_an_import(
    through_front: Client, front: Front, state: SomeState
) -> None:
    state.push(large(400_000, 1))  # 6 seconds
    (through_front.home / "s.tfstate").write_bytes(document(2))
    through = passed(front)

    def slow(connection: socket.socket) -> None:
        time.sleep(6)
        through(connection)

    front.script.extend([through, through, slow])  # the lookup, the lock and the read
    through_front.run("import", "s.tfstate", state.name, "--force", "--timeout", "5")


def test_an_unreachable_service(tmp_path: Path, tokens: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    client = Client(tmp_path, url, tokens["admin"])

    done = client.run("states", "--timeout", "3", code=6)

    assert done.stderr.count("Connection refused") > 1
    other = Client(tmp_path, "http://no-such-host.invalid", tokens["admin"])
    assert "Cannot reach" in other.run("states", "--timeout", "2", code=6).stderr


def test_an_unreachable_proxy_is_named(tmp_path: Path, tokens: dict[str, str]) -> None:
    proxy = f"127.0.0.1:{free_port()}"
    variables = {"https_proxy": f"http://ada:very-secret@{proxy}"}
    client = Client(tmp_path, "https://service.example", tokens["admin"], **variables)

    refused = client.run("states", "--timeout", "1", code=6).stderr

    assert f"https://service.example through the proxy {proxy}: Connection refused" in refused


def test_the_longest_limit_is_accepted(through_front: Client) -> None:
    through_front.run("states", "--timeout", "999999d")


@pytest.mark.parametrize("slow", [silent, dripping])
def test_ctrl_c_ends_the_wait(
    through_front: Client, front: Front, slow: Callable[[Front], Act]
) -> None:
    front.script.append(slow(front))
    process = through_front.start("states")
    assert front.arrived.wait(MAX_WAIT)

    out, err = interrupted(process, signal.SIGINT)

    # The shell sees the signal, as of any other program: 130.
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")


def test_ctrl_c_ends_the_pause_before_an_attempt(through_front: Client, front: Front) -> None:
    front.script.append(answer("503 Busy", refusal(503, "DATABASE_BUSY"), Retry_After=50))
    process = through_front.start("states")
    assert process.stderr is not None
    assert "Next attempt in 50.0 s." in process.stderr.readline()

    _, err = interrupted(process, signal.SIGINT)

    assert (process.returncode, err) == (-signal.SIGINT, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("until", ["lock", "push"])
def test_an_interrupted_import_releases_its_lock(
    through_front: Client, front: Front, state: SomeState, number: signal.Signals, until: str
) -> None:
    state.push(document(1))
    (through_front.home / "s.tfstate").write_bytes(document(2))
    through = passed(front)

    def processed_without_answer(connection: socket.socket) -> None:
        lost_after(front)(connection)
        silent(front)(connection)

    before = {"lock": [through], "push": [through] * 3}[until]
    front.script.extend([*before, processed_without_answer])
    process = through_front.start("import", "s.tfstate", state.name)
    wait_until(lambda: len(front.requests) == len(before) + 1 and state.is_locked())

    _, err = interrupted(process, number)

    assert process.returncode == {signal.SIGINT: -2, signal.SIGTERM: 143}[number]
    assert err == ""
    assert not state.is_locked()


def interrupted(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Send a signal; return the output."""
    process.send_signal(number)
    return process.communicate(timeout=MAX_WAIT)


def test_a_closed_pipe_is_no_error(client: Client, state: SomeState) -> None:
    state.push(document(1))
    process = client.start("states", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None

    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(MAX_WAIT) == 141


def test_a_redirect_does_not_carry_the_token(
    through_front: Client, front: Front, tokens: dict[str, str]
) -> None:
    with running_front() as other:
        front.script.append(answer("302 Found", Location=f"{other.url}/api/v1/states"))

        done = through_front.run("states", code=1)

        assert other.requests == []
    assert "redirect" in done.stderr
    assert tokens["admin"] not in done.stderr


DEEP = '{"states": [' + '{"a":' * 700 + "1" + "}" * 700 + '], "next_page_token": ""}'


@pytest.mark.parametrize(
    "body", ["<html>Sign in to the hotel</html>", "[]", "null", "{" * 9000, DEEP]
)
def test_another_server_is_an_error(through_front: Client, front: Front, body: str) -> None:
    front.script.append(answer("200 OK", body))

    done = through_front.run("states", "--json", code=1)

    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words", [("--timeout", "-1"), ("--timeout", "nan"), ("--since", "soon"), ("--limit", "-1")]
)
def test_limits_out_of_range(client: Client, words: tuple[str, str]) -> None:
    error = client.run("changes", *words, code=2).stderr.splitlines()[-1]

    assert error.startswith(f"infra changes: error: argument {words[0]}: ")


def test_certificates_are_verified(
    tmp_path: Path, live: LiveServer, tokens: dict[str, str]
) -> None:
    certificate = self_signed(tmp_path, "localhost")
    with running_front(live, certificate) as front:
        client = Client(tmp_path, front.url, tokens["admin"])

        done = client.run("states", code=6)

        assert "is not trusted" in done.stderr
        assert front.requests == []
        client.environment["SSL_CERT_FILE"] = str(certificate[0])
        # A single page, although another test creates a hundred states.
        client.run("states", "--limit", "1")
        assert front.lines == ["GET /api/v1/states"]


def test_verbose_shows_requests_without_the_token(
    client: Client, live: LiveServer, tokens: dict[str, str]
) -> None:
    shown = client.run("states", "--verbose", "--limit", "1").stderr

    assert "infra: GET /api/v1/states?" in shown
    assert ": 200, " in shown
    assert tokens["admin"] not in shown


@pytest.fixture
def stopped(live: LiveServer) -> Iterator[LiveServer]:
    """The real service, whose processes are stopped: the kernel accepts, and nothing answers."""
    live.signal(signal.SIGSTOP, to_all=True)
    try:
        yield live
    finally:
        live.signal(signal.SIGCONT, to_all=True)


@pytest.mark.both
def test_a_stopped_service_is_an_error_after_the_limit(stopped: LiveServer, client: Client) -> None:
    done = client.run("states", "--timeout", "1", code=6)

    assert done.stderr == f"infra: {stopped.url} did not respond within 1 s.\n"


@pytest.mark.both
def test_ctrl_c_ends_the_wait_for_a_stopped_service(stopped: LiveServer, client: Client) -> None:
    process = client.start("states", "--verbose")
    wait_until(lambda: "socket:" in open_files(process.pid))

    assert interrupted(process, signal.SIGINT) == ("", "")

    assert process.returncode == -signal.SIGINT


def open_files(pid: int) -> str:
    """Return the names of the files and sockets of a process."""
    with contextlib.suppress(OSError):
        return " ".join(str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir())
    return ""


@pytest.mark.both
@pytest.mark.long
def test_a_locked_database_delays_a_change(client: Client, state: SomeState) -> None:
    state.push(document(1))
    with locked_database(state.live):
        process = client.start("freeze", state.name, "--reason", "upgrade")
        assert process.stderr is not None
        assert "Next attempt in " in process.stderr.readline()

    out, _ = process.communicate(timeout=MAX_WAIT)

    assert (process.returncode, out) == (0, f"{state.name} is frozen.\n")


@contextlib.contextmanager
def locked_database(live: LiveServer) -> Iterator[None]:
    """Let all writes of the service wait until its own limit, after which it responds 503."""
    if url := live.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE states_state IN EXCLUSIVE MODE")
            yield
            holder.rollback()
        return
    file = live.directory / "db.sqlite3"
    with contextlib.closing(sqlite3.connect(file, timeout=20, isolation_level=None)) as holding:
        holding.execute("BEGIN IMMEDIATE")
        yield
        holding.execute("ROLLBACK")
