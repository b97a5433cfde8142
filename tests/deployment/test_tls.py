"""The proxies with TLS, from the how-tos, in front of a service with the settings of deploy.md.

The proxy listens on unprivileged ports, which also tests the port in addresses.
"""

from __future__ import annotations

import contextlib
import http.client
import http.cookies
import json
import re
import socket
import ssl
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.deployment.proxies import program, running, with_tls
from tests.e2e.backend import Backend, document
from tests.e2e.terraform import BINARY, Terraform
from tests.support.certificates import self_signed
from tests.support.installation import ROOT
from tests.support.postgres import free_port
from tests.support.server import Answer, LiveServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.terraform

HOW_TO = ROOT / "docs" / "how-to"
PAGES = {"nginx": "deploy.md", "haproxy": "high-availability.md"}
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
WEAK = "DEFAULT:@SECLEVEL=0"
WEAKER = {
    "nginx": ("    ssl_certificate ", f"    ssl_ciphers {WEAK}; ssl_certificate "),
    "haproxy": ("both.pem", f"both.pem ciphers {WEAK}"),
}
# Of ten resources, 12 MB: more than a buffer of either proxy.
LARGE = """
    locals {
      kilobytes = join("", [for i in range(32) : sha256(tostring(i))]) # 2 KiB
      large     = join("", [for i in range(300) : local.kilobytes])
    }
    resource "terraform_data" "large" {
      count = 10
      input = "${count.index}${local.large}"
    }
"""


def block(page: str, beginning: str) -> str:
    """Return the block of a page that contains this line."""
    (found,) = [
        block
        for block in re.findall(
            r"^```\w*\n(.+?)^```", (HOW_TO / page).read_text(), re.MULTILINE | re.DOTALL
        )
        if re.search(f"^{re.escape(beginning)}", block, re.MULTILINE)
    ]
    return str(found)


class Behind(LiveServer):
    """The service over TLS, for a client with the proxy's certificate."""

    def __init__(self, service: LiveServer, port: int, plain_port: int, certificate: Path) -> None:
        self.service, self.port, self.plain_port = service, port, plain_port
        self.certificate = certificate

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        token: str = "",
        headers: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> Answer:
        connection = http.client.HTTPSConnection(
            "localhost", self.port, timeout=timeout,
            context=ssl.create_default_context(cafile=str(self.certificate)),
            source_address=("127.0.0.9", 0),
        )  # fmt: skip
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return answered(connection, method, path, body, {**given, **(headers or {})})

    def plain(self, path: str, host: str, **headers: str) -> Answer:
        """Send a request without TLS."""
        connection = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=60)
        return answered(connection, "GET", path, None, {"Host": host, **headers})


def answered(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
) -> Answer:
    """Return the answer, with ``Names-Like-This``: HAProxy sends lower case."""
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        named = {name.title(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())


@pytest.fixture(scope="module")
def service() -> Iterator[LiveServer]:
    text = block("deploy.md", "# /etc/infra-service.env").replace("infra.example", "localhost")
    settings = dict(re.findall(r"^(\w+)=([^…\n]+)$", text, re.MULTILINE))
    assert settings == {
        "ALLOWED_HOSTS": "localhost",
        "CSRF_TRUSTED_ORIGINS": "https://localhost",
        "BEHIND_TLS_PROXY": "true",
        "SECURE_SSL_REDIRECT": "true",
        "SECURE_HSTS_SECONDS": "31536000",
    }
    with tempfile.TemporaryDirectory(prefix="infra-live-") as directory:
        server = LiveServer(Path(directory), **settings)
        with contextlib.closing(server):
            server.prepare()
            server.start()
            yield server


@pytest.fixture(scope="module", params=PAGES)
def behind(request: pytest.FixtureRequest, service: LiveServer) -> Iterator[Behind]:
    proxy: str = request.param
    program(proxy)
    beginning = {"nginx": "upstream infra_service", "haproxy": "frontend infra_service"}[proxy]
    ports = free_port(), free_port()
    server = f"127.0.0.1:{service.port}"
    with tempfile.TemporaryDirectory(prefix="infra-proxy-") as name:
        # nginx's master runs as root here, and its worker as another user, who owns buffered
        # bodies.
        directory = Path(name)
        directory.chmod(0o755)
        made = self_signed(directory, "localhost")
        text = with_tls(proxy, block(PAGES[proxy], beginning), ports, made, server)
        with running(proxy, text, ports[0], directory):
            # HAProxy forwards requests to an instance after its first successful check.
            there = Behind(service, *ports, made[0])
            wait_until(lambda: there.request("GET", "/healthz").status == 200)
            yield there


@pytest.fixture(scope="module")
def token(service: LiveServer) -> str:
    return service.token("state:read", "state:write", "state:admin")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("proxy", PAGES)
def test_old_versions_of_tls_are_refused(proxy: str, tmp_path: Path) -> None:
    program(proxy)
    ports = free_port(), free_port()
    text = (ROOT / "deploy" / FILES[proxy]).read_text()
    text = with_tls(proxy, text, ports, self_signed(tmp_path, "localhost"), "127.0.0.1:1")
    # OpenSSL 3 supports these versions only at this level.
    old, new = WEAKER[proxy]
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version, client.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    client.set_ciphers(WEAK)
    with running(proxy, text.replace(old, new), ports[0], tmp_path):
        connection = socket.create_connection(("127.0.0.1", ports[0]), 10)
        with connection, pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            client.wrap_socket(connection)


def test_terraform_applies(behind: Behind, token: str, tmp_path: Path) -> None:
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    backend = Backend(behind, token)
    tf = Terraform(tmp_path / "tf", backend.address, token, SSL_CERT_FILE=str(behind.certificate))
    tf.write('resource "terraform_data" "a" { input = "first" }')
    tf.run("init")
    tf.apply()
    assert backend.get().body == tf.pulled()

    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200
    refused = tf.apply(code=1).out
    assert f"already locked: ID={lock_id}" in refused
    tf.run("force-unlock", "-force", lock_id)
    assert backend.holder() is None

    tf.write(LARGE)
    tf.apply()
    stored = backend.get().body
    assert len(stored) > 12_000_000
    assert stored == tf.pulled()
    tf.run("plan", "-detailed-exitcode", code=0)
    tf.run("destroy", "-auto-approve")


def test_the_log_has_the_address_of_the_client(behind: Behind, token: str) -> None:
    """Neither the proxy's address, nor a header of the client."""
    backend = Backend(behind, token)
    answer = behind.request(
        "GET", backend.path, token=token, headers={"X-Forwarded-For": "203.0.113.7"}
    )
    assert answer.status == 404
    (line,) = [
        line
        for line in map(json.loads, behind.service.log.read_text().splitlines())
        if line.get("request_id") == answer.headers["X-Request-Id"] and "status" in line
    ]
    assert line["address"] == "127.0.0.9"


def test_server_works_without_tls(behind: Behind, token: str) -> None:
    page = behind.plain("/admin/login/", "localhost")
    assert (page.status, page.headers["Location"]) == (301, "https://localhost/admin/login/")
    path = Backend(behind, token).path
    # A client cannot claim that its request used TLS.
    for claim in ({}, {"X-Forwarded-Proto": "https"}):
        assert behind.plain(path, "localhost", **claim).reason == "HTTPS_REQUIRED"


def test_browsers_receive_hsts(behind: Behind) -> None:
    answer = behind.request("GET", "/admin/login/")
    assert answer.status == 200
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert behind.request("GET", "/", headers={"Host": "other.example"}).status == 400


def test_admin_is_served_on_a_separate_port(behind: Behind) -> None:
    """The browser's origin includes the port, and must match the requested address."""
    page = behind.request("GET", "/admin/login/?next=/admin/")
    cookie = http.cookies.SimpleCookie(page.headers["Set-Cookie"])["csrftoken"]
    assert cookie["secure"]
    (form_token,) = re.findall(rb'name="csrfmiddlewaretoken" value="(\w+)"', page.body)
    fields = {
        "csrfmiddlewaretoken": form_token.decode(),
        "username": "operator",
        "password": behind.service.environment["DJANGO_SUPERUSER_PASSWORD"],
        "next": "/admin/",
    }

    def log_in(origin: str) -> Answer:
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": f"csrftoken={cookie.value}",
            "Origin": origin,
            "Referer": f"{origin}/admin/login/",
        }
        body = urlencode(fields).encode()
        return behind.request("POST", "/admin/login/?next=/admin/", body, headers=headers)

    assert log_in("https://evil.example").status == 403
    answer = log_in(behind.url)
    assert (answer.status, answer.headers.get("Location")) == (302, "/admin/")


def test_a_push_as_large_as_may_be(behind: Behind, token: str) -> None:
    backend = Backend(behind, token)
    body = document(1, filler="x" * (60 * 1024 * 1024))
    assert backend.push(body).status == 200
    assert backend.get().body == body
    assert backend.send("DELETE", b"").status == 200
