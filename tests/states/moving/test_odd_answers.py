"""An import finishes with a clear error for any malformed response of a service."""

from __future__ import annotations

import copy
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from states.moving import web
from states.moving.sources import SourceError, open_source
from states.moving.web import WebClient
from tests.states.moving import gitlab, tfe
from tests.states.moving.gitlab import GitLabService, Kept
from tests.states.moving.replay import Replay, Reply, Request
from tests.states.moving.tfe import TfeService, Workspace

LIMIT = 1000
DIGITS = "9" * 5000


def client(base: str, pauses: list[float] | None = None) -> WebClient:
    sleep = (pauses if pauses is not None else []).append
    return WebClient(base, "secret", named_by="URL", token_named_by="TOKEN", sleep=sleep)


@contextmanager
def replaying(*replies: Reply) -> Iterator[Replay]:
    with Replay(lambda _: Reply(200, "{}")) as replay:
        replay.first = list(replies)
        yield replay


@pytest.mark.parametrize(
    "address",
    [
        "http://elsewhere.example/signed",
        "file:///etc/passwd",
        "ftp://127.0.0.1/signed",
        "//elsewhere.example/signed",
        "https://user:pass@elsewhere.example/",
        "https://elsewhere.example:99999/",
        "https://[elsewhere",
        "https://elsewhere.example/a b",
        "https://elsewhere.example/\u00e9",
        "https://",
    ],
)
def test_the_first_address_of_a_download_is_checked(address: str) -> None:
    with replaying() as replay:
        with pytest.raises(
            SourceError, match=r"a URL in its response (is not|must have)"
        ) as caught:
            client(replay.url).request("GET", address)

        assert replay.requests == []
        assert "pass" not in str(caught.value)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "https://[x", "http://a.example/"])
def test_the_address_of_a_redirect_is_checked(location: str) -> None:
    with (
        replaying(Reply(302, "", {"Location": location})) as replay,
        pytest.raises(SourceError, match=r"a redirect (is not|must have)"),
    ):
        client(replay.url).request("GET", "a")


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [(DIGITS, 60), ("0" * 5000, 0), ("0" * 5000 + "7", 7), ("-1", 1), ("1e9", 1), ("", 1)],
)
def test_pauses_are_limited(retry_after: str, pause: float) -> None:
    pauses: list[float] = []
    with replaying(Reply(503, "", {"Retry-After": retry_after})) as replay:
        client(replay.url, pauses).json("a")

    assert pauses == [pause]


@pytest.mark.parametrize("body", ["[" * 100_000, DIGITS, "", "{"])
def test_non_json_is_rejected(body: str) -> None:
    with (
        replaying(Reply(200, body)) as replay,
        pytest.raises(SourceError, match="a response that is not JSON"),
    ):
        client(replay.url).json("a")


ENDLESS: dict[str, Callable[[int], bytes]] = {
    "interim responses": lambda _: b"HTTP/1.1 100 Continue\r\n\r\n",
    "a header": lambda n: b"HTTP/1.1 200 OK\r\nA: " if n == 0 else b"a" * 1000,
    "headers": lambda n: b"HTTP/1.1 200 OK\r\n" if n == 0 else b"A: b\r\n",
    "a status": lambda n: b"HTTP/1.1 200" if n == 0 else b"2" * 1000,
    "a slow body": lambda n: b"HTTP/1.1 200 OK\r\n\r\n" if n == 0 else b" ",
    "a length": lambda n: (
        b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n" % DIGITS.encode() if n == 0 else b"x"
    ),
    "chunks": lambda n: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" if n == 0 else b"f" * 1000
    ),
    "nothing": lambda _: b"",
}


@contextmanager
def endless(part: Callable[[int], bytes]) -> Iterator[str]:
    """A server that sends parts until the client disconnects."""
    is_over = threading.Event()

    def answer(line: socket.socket) -> None:
        with line:
            line.recv(4096)
            number = 0
            try:
                while not is_over.wait(0.001 if number < 200 else 0.02):
                    line.sendall(part(number))
                    number += 1
            except OSError:
                return

    def serve() -> None:
        while not is_over.is_set():
            try:
                line, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(line,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            is_over.set()


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_an_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_ANSWER_SECONDS", 0.3)
    with endless(ENDLESS[kind]) as base, pytest.raises(SourceError):
        client(base).json("a")


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1.5, "", "a\0b", "\ud800", [], {}, ["a"], "https://[x",
    "file:///etc/passwd", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00",
)  # fmt: skip


def mutations(value: Any) -> Iterator[Any]:
    """Yield the value with each of its members, and all of it, in each odd form."""
    yield from ODD
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            for odd in mutations(value[key]):
                changed = copy.copy(value)
                changed[key] = odd
                yield changed


def walk(source: Any) -> None:
    """Read everything, as an import does, until the service fails."""
    for state in source.states():
        for version in source.versions(state, None):
            source.read(state, version, LIMIT)


SERVICES: dict[str, tuple[str, Any, Any]] = {
    "tfe": (
        "tfe:acme",
        lambda: TfeService([Workspace("network-prod", [b"{}", b"{}"], locked_by="grace")]),
        tfe.serving,
    ),
    "gitlab": (
        "gitlab:acme",
        lambda: GitLabService(
            {
                "acme/network": [Kept("prod", {1: b"{}", 2: b"{}"}, locked_by="grace")],
                "acme/web": [],
                "acme/shop": [],
            }
        ),
        gitlab.serving,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SERVICES)
def test_each_member_of_each_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an import's own error may be raised."""
    address, make, serving = SERVICES[name]
    # A default is bound early, so that a patch of time.sleep would have no effect.
    monkeypatch.setitem(WebClient.__init__.__kwdefaults__, "sleep", lambda _: None)
    with serving(make()) as replay:
        monkeypatch.setenv("TFE_ADDRESS", replay.url)
        monkeypatch.setenv("TFE_TOKEN", tfe.TOKEN)
        monkeypatch.setenv("GITLAB_URL", replay.url)
        monkeypatch.setenv("GITLAB_TOKEN", gitlab.TOKEN)
        real: Callable[[Request], Reply] = replay._answer
        answers: list[Reply] = []

        def record(request: Request) -> Reply:
            answers.append(real(request))
            return answers[-1]

        replay._answer = record
        walk(open_source(address))
        tried = 0
        for place, answer in enumerate(list(answers)):
            for odd in mutations(answer.content):
                tried += 1
                numbers = iter(range(1_000))

                def reply(
                    request: Request, odd: Any = odd, numbers: Any = numbers, place: int = place
                ) -> Reply:
                    usual = real(request)
                    is_meant = next(numbers, None) == place
                    return Reply(usual.status, odd, usual.headers) if is_meant else usual

                replay._answer = reply
                try:
                    walk(open_source(address))
                except SourceError:
                    continue
    assert tried > 100


def test_circular_pages_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: Request) -> Reply:
        if "graphql" in request.path:
            page = {"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": "1"}}
            return Reply(200, {"data": {"project": {"terraformStates": page}}})
        if "groups" in request.path:
            return Reply(200, [], {"Link": '</api/v4/groups/acme>; rel="next"'})
        if "projects" in request.path:
            return Reply(404 if "acme" in request.path else 200, {})
        return Reply(200, {"data": [], "meta": {"pagination": {"next-page": 1}}})

    with Replay(reply) as replay:
        monkeypatch.setenv("TFE_ADDRESS", replay.url)
        monkeypatch.setenv("TFE_TOKEN", tfe.TOKEN)
        monkeypatch.setenv("GITLAB_URL", replay.url)
        monkeypatch.setenv("GITLAB_TOKEN", gitlab.TOKEN)
        for address in ("tfe:acme", "gitlab:acme", "gitlab:other"):
            with pytest.raises(SourceError, match="unknown form"):
                walk(open_source(address))
