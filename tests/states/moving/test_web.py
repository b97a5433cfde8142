"""HTTP requests to other services: states.moving.web."""

import base64
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from states.moving.sources import SourceError, TooLargeError
from states.moving.web import RefusedError, WebClient, require_https
from tests.states.moving.replay import Replay, Reply, Request
from tests.support.certificates import self_signed
from tests.support.postgres import free_port

TOKEN = "very-secret"


def answer(request: Request) -> Reply:
    if request.path.startswith("/moved-to/"):
        return Reply(302, "", {"Location": request.query["url"]})
    if request.token != TOKEN:
        return Reply(401, {"message": "401 Unauthorized"})
    return Reply(200, {"path": request.path})


@pytest.fixture
def replay() -> Iterator[Replay]:
    with Replay(answer) as replay:
        yield replay


class Web:
    """A client, and the pauses that it makes."""

    def __init__(self, base: str, token: str = TOKEN) -> None:
        self.pauses: list[float] = []
        self.client = WebClient(
            base, token, named_by="THE_URL", token_named_by="THE_TOKEN", sleep=self.pauses.append
        )


@pytest.fixture
def web(replay: Replay) -> Web:
    return Web(replay.url)


def test_response_is_read(web: Web, replay: Replay) -> None:
    assert web.client.json("a/b?c=d") == {"path": "/a/b"}
    assert replay.requests[0].query == {"c": "d"}


def test_base_url_may_have_a_path(replay: Replay) -> None:
    web = Web(f"{replay.url}/gitlab/")

    assert web.client.json("a") == {"path": "/gitlab/a"}
    assert web.client.json("/a") == {"path": "/a"}


def test_connection_is_kept(web: Web, replay: Replay) -> None:
    for _ in range(3):
        web.client.json("a")

    assert len({request.port for request in replay.requests}) == 1
    assert web.pauses == []


def test_connection_that_was_closed_meanwhile_is_opened_again(web: Web, replay: Replay) -> None:
    replay.first = [Reply(200, {}, {"Connection": "close"})]

    web.client.json("a")

    assert web.client.json("b") == {"path": "/b"}


def test_retry_after_is_followed_up_to_a_limit(web: Web, replay: Replay) -> None:
    replay.first = [
        Reply(429, "", {"Retry-After": "7"}),
        Reply(503, "", {"Retry-After": "86400"}),
        Reply(503),
        Reply(502, "", {"Retry-After": "Sun, 01 Nov 2026 10:00:00 GMT"}),
    ]

    assert web.client.json("a") == {"path": "/a"}
    assert web.pauses == [7, 60, 4, 8]


def test_it_gives_up(web: Web, replay: Replay) -> None:
    replay.first = [Reply(503)] * 9

    with pytest.raises(SourceError, match=r"127\.0\.0\.1:\d+ responded with 503\. Try again later"):
        web.client.json("a")

    assert len(replay.requests) == 5
    assert web.pauses == [1, 2, 4, 8]


def test_unreachable_server_is_reported() -> None:
    web = Web(f"http://127.0.0.1:{free_port()}")

    with pytest.raises(SourceError, match=r"does not respond \(Connection refused\)"):
        web.client.json("a?secret=signature")

    assert len(web.pauses) == 4


def test_truncated_response_is_retried(web: Web, replay: Replay) -> None:
    replay.first = [Reply(200, {"path": "/wrong"}, {"Content-Length": "99"})]

    assert web.client.json("a") == {"path": "/a"}
    assert web.pauses == [1]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, r"does not accept the token\. Set THE_TOKEN"),
        (403, "The token in THE_TOKEN lacks the permission"),
        (404, "has no such object, or the token in THE_TOKEN cannot access it"),
        (520, "responded with 520"),
    ],
)
def test_client_errors_are_not_retried(
    status: int, sentence: str, web: Web, replay: Replay
) -> None:
    replay.first = [Reply(status, {"message": "no"})]

    with pytest.raises(RefusedError, match=sentence) as raised:
        web.client.json("a")

    assert raised.value.status == status
    assert TOKEN not in str(raised.value)
    assert len(replay.requests) == 1


@pytest.mark.parametrize("token", ["", " \n", "two\nlines", "clé"])
def test_missing_or_invalid_token_is_reported(token: str) -> None:
    with pytest.raises(SourceError, match=r"The token for .* is missing\. Set THE_TOKEN") as raised:
        Web("https://gitlab.example", token)

    assert "lines" not in str(raised.value)


def test_token_with_the_end_of_its_line(replay: Replay) -> None:
    assert Web(replay.url, f"{TOKEN}\n").client.json("a") == {"path": "/a"}


def test_token_does_not_go_to_another_host(web: Web, replay: Replay) -> None:
    with Replay(lambda _: Reply(200, "the document")) as elsewhere:
        answer = web.client.request("GET", f"moved-to/?url={elsewhere.url}/signed")

    assert answer.body == b"the document"
    assert replay.requests[0].token == TOKEN
    assert "Authorization" not in elsewhere.requests[0].headers


def test_token_goes_along_on_the_same_host(web: Web, replay: Replay) -> None:
    assert web.client.json("moved-to/?url=/b") == {"path": "/b"}


def test_redirect_to_plain_http_is_refused(web: Web) -> None:
    with pytest.raises(SourceError, match="a redirect must have the form https"):
        web.client.json("moved-to/?url=http://elsewhere.example/signed")


def test_circle_of_redirects(web: Web, replay: Replay) -> None:
    replay.first = [Reply(302, "", {"Location": "/a"})] * 9

    with pytest.raises(SourceError, match="responded with 302"):
        web.client.json("a")


class TestLimits:
    def test_response_within_the_announced_size_is_read(self, web: Web, replay: Replay) -> None:
        replay.first = [Reply(200, "x" * 11)]

        with pytest.raises(TooLargeError, match="11 bytes"):
            web.client.request("GET", "a", limit=10)

        assert web.client.json("b") == {"path": "/b"}

    def test_response_without_an_announced_size_is_limited(self, web: Web, replay: Replay) -> None:
        replay.first = [Reply(200, f"b\r\n{'x' * 11}\r\n0\r\n\r\n", CHUNKED)]

        with pytest.raises(TooLargeError):
            web.client.request("GET", "a", limit=10)

    def test_response_over_the_limit_is_rejected(self, web: Web, replay: Replay) -> None:
        replay.first = [Reply(200, "x" * 10), Reply(200, f"a\r\n{'y' * 10}\r\n0\r\n\r\n", CHUNKED)]

        assert web.client.request("GET", "a", limit=10).body == b"x" * 10
        assert web.client.request("GET", "a", limit=10).body == b"y" * 10
        assert web.client.json("b") == {"path": "/b"}
        assert web.pauses == []

    def test_of_a_refusal_is_not_the_documents(self, web: Web, replay: Replay) -> None:
        replay.first = [Reply(401, "x" * 11)]

        with pytest.raises(RefusedError):
            web.client.request("GET", "a", limit=10)


CHUNKED = {"Transfer-Encoding": "chunked"}


def test_non_json_is_rejected(web: Web, replay: Replay) -> None:
    replay.first = [Reply(200, "<html>sign in</html>")]

    with pytest.raises(SourceError, match="a response that is not JSON"):
        web.client.json("a")


@pytest.mark.parametrize(
    "url",
    [
        "http://gitlab.example",
        "http://127.0.0.1.example",
        "https://",
        "gitlab.example",
        "https://user:pass@gitlab.example",
        "ftp://127.0.0.1",
        "https://gitlab.example:port",
        "https://[gitlab.example",
    ],
)
def test_invalid_addresses_are_refused(url: str) -> None:
    with pytest.raises(SourceError, match="GITLAB_URL must have the form") as raised:
        require_https(url, "GITLAB_URL")

    assert "pass" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["https://gitlab.example", "http://localhost:1", "http://127.0.0.2", "http://[::1]:80"]
)
def test_valid_addresses_are_accepted(url: str) -> None:
    require_https(url, "GITLAB_URL")


def test_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            while len(received) < 5:
                line, _ = proxy.accept()
                with line:
                    received.append(line.recv(4096))
                    line.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        place = f"127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", f"http://ada:p%40ss@{place}")
        monkeypatch.setenv("no_proxy", "")

        sentence = f"https://gitlab.example:443 does not respond through the proxy {place} (the"
        with pytest.raises(SourceError, match=re.escape(sentence)):
            Web("https://gitlab.example").client.json("a")
        thread.join()

    assert received[0].startswith(b"CONNECT gitlab.example:443 ")
    login = base64.b64encode(b"ada:p@ss")
    assert b"\r\nProxy-Authorization: Basic %b\r\n\r\n" % login in received[0]
    assert TOKEN.encode() not in received[0]


def test_invalid_proxy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://ada:very-secret@proxy.example:99999")
    monkeypatch.setenv("no_proxy", "")

    with pytest.raises(SourceError, match=r"^HTTPS_PROXY must have the form http://host:port\.$"):
        Web("https://gitlab.example").client.json("a")


def test_untrusted_certificate_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = self_signed(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Replay(lambda _: Reply(200, {}), context) as replay:
        web = Web(replay.url)

        with pytest.raises(SourceError, match=r"is not trusted\. Add the certificate authority"):
            web.client.json("a")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

        assert Web(replay.url).client.json("a") == {}
        assert web.pauses == []
