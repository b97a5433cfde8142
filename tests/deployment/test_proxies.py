"""The proxy files in ``deploy/``: valid, shown in the how-tos, and safe to repeat requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socketserver
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment.proxies import (
    HAPROXY,
    NGINX,
    command,
    haproxy_file,
    nginx_file,
    running,
    with_tls,
)
from tests.e2e.backend import Backend, document, lock_info
from tests.support.certificates import self_signed
from tests.support.installation import ROOT
from tests.support.postgres import free_port
from tests.support.server import LiveServer

HOW_TO = ROOT / "docs" / "how-to"


@pytest.mark.parametrize(
    ("page", "file"), [("deploy.md", NGINX), ("high-availability.md", HAPROXY)]
)
def test_the_how_to_shows_the_file(page: str, file: Path) -> None:
    assert f"\n{file.read_text()}```" in (HOW_TO / page).read_text()


@pytest.mark.parametrize(("name", "file"), [("nginx", NGINX), ("haproxy", HAPROXY)])
def test_the_proxy_accepts_the_file(name: str, file: Path, tmp_path: Path) -> None:
    made = self_signed(tmp_path, "infra.example")
    text = with_tls(name, file.read_text(), (8443, 8080), made, "127.0.0.1:8000")
    check = ["-t", "-q"] if name == "nginx" else ["-c", "-q"]
    done = subprocess.run(
        [*command(name, text, tmp_path), *check], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_haproxy_accepts_the_file_of_the_failover(tmp_path: Path) -> None:
    page = (HOW_TO / "high-availability.md").read_text()
    (listen,) = re.findall(r"^```\n(listen primary\n.+?)^```", page, re.MULTILINE | re.DOTALL)
    times = "timeout connect 1s\n timeout client 1m\n timeout server 1m"
    text = f"defaults\n mode tcp\n {times}\n\n{listen}"
    check = [*command("haproxy", text, tmp_path), "-c", "-q"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Deaf(socketserver.ThreadingTCPServer):
    """An instance that executes requests but loses the answers, except to health checks."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, server: LiveServer, *, hangs: bool) -> None:
        super().__init__(("127.0.0.1", 0), Lost)
        self.server, self.hangs, self.lost = server, hangs, 0
        self.end = threading.Event()


class Lost(socketserver.StreamRequestHandler):
    server: Deaf

    def handle(self) -> None:
        method, path, _ = self.rfile.readline().decode().split()
        headers = http.client.parse_headers(self.rfile)
        body = self.rfile.read(int(headers.get("Content-Length", 0)))
        port = self.server.server.port
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        if path == "/readyz":
            head = f"HTTP/1.1 {answer.status} OK\r\nContent-Length: {len(content)}\r\n\r\n"
            self.wfile.write(head.encode() + content)
            return
        self.server.lost += 1
        if self.server.hangs:
            self.server.end.wait(30)


@pytest.fixture(params=["nginx", "haproxy"])
def proxy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["hangs", "hangs up"])
def deaf(request: pytest.FixtureRequest, live: LiveServer) -> Iterator[Deaf]:
    with Deaf(live, hangs=request.param) as deaf:
        threading.Thread(target=deaf.serve_forever).start()
        yield deaf
        deaf.end.set()
        deaf.shutdown()


@pytest.fixture
def backend(live: LiveServer, proxy: str, deaf: Deaf, tmp_path: Path) -> Iterator[Backend]:
    """A state behind the proxy, with an instance that loses its answers and a working instance."""
    token = live.token("state:read", "state:write", "state:admin")
    port = free_port()
    servers = [f"127.0.0.1:{deaf.server_address[1]}", f"127.0.0.1:{live.port}"]
    if proxy == "nginx":
        text = nginx_file(f"127.0.0.1:{port}", servers)
        assert "proxy_read_timeout 35s" in text
        text = text.replace("read_timeout 35s", "read_timeout 1s")
    else:
        text = haproxy_file(f"127.0.0.1:{port}", servers)
        assert "timeout server 35s" in text
        text = text.replace("server 35s", "server 1s")

    class Behind(LiveServer):
        def __init__(self) -> None:
            self.port = port

    with running(proxy, text, port, tmp_path):
        yield Backend(Behind(), token)


def test_request_with_a_lost_response_is_repeated_and_applied_once(
    live: LiveServer, deaf: Deaf, backend: Backend
) -> None:
    direct = Backend(live, backend.token)
    direct.component_id, direct.environment_id = backend.component_id, backend.environment_id
    for serial in range(1, 5):
        assert backend.push(document(serial)).status == 200
    lock_id = str(uuid.uuid4())
    for serial in range(5, 7):
        assert backend.lock(lock_id).status == 200
        assert backend.push(document(serial), lock_id).status == 200
        assert backend.unlock(lock_id).status == 200
    for method in ("POST", "DELETE"):
        body = json.dumps(lock_info(lock_id)).encode()
        for _ in range(2):
            assert backend.send(method, body, "/lock").status == 200

    assert deaf.lost >= 4
    assert backend.get().body == direct.get().body == document(6)
    filter_ = f"filter=field%5B%27component_id%27%5D%20%3D%20%27{backend.component_id}%27"
    (state,) = live.request("GET", f"/api/v1/states?{filter_}", token=backend.token).json()[
        "states"
    ]
    assert "lock" not in state
    path = f"/api/v1/states/{state['id']}/versions"
    versions = live.request("GET", path, token=backend.token).json()["versions"]
    assert sorted(version["serial"] for version in versions) == [1, 2, 3, 4, 5, 6]
    # A repeated DELETE finds the state deleted.
    assert backend.send("DELETE", b"").status in {200, 404}
    assert direct.get().status == 404


def test_no_other_post_is_repeated(live: LiveServer, deaf: Deaf, backend: Backend) -> None:
    """A repetition could create a duplicate."""
    statuses = []
    for _ in range(4):
        body = json.dumps({"environment": {"name": uuid.uuid4().hex}}).encode()
        headers = {"Content-Type": "application/json"}
        path = "/api/v1/environments"
        answer = backend.server.request("POST", path, body, token=backend.token, headers=headers)
        statuses.append(answer.status)
    assert deaf.lost == sum(status in (502, 504) for status in statuses) > 0
    assert set(statuses) <= {201, 502, 504}


def test_figures_do_not_pass_the_proxy(backend: Backend) -> None:
    for path in ("/metrics", "/metrics/"):
        assert backend.server.request("GET", path).status == 404
