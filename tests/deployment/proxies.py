"""The proxy configurations in ``deploy/``, with the addresses and certificates of a test."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.installation import ROOT
from tests.support.waiting import wait_until

NGINX: Final = ROOT / "deploy" / "nginx.conf"
HAPROXY: Final = ROOT / "deploy" / "haproxy.cfg"
_SERVERS: Final = ("10.0.0.21:8000", "10.0.0.22:8000")
_TLS: Final = {"nginx": "listen 443 ssl;", "haproxy": "bind :443 ssl crt"}
_PLAIN: Final = {"nginx": "listen 80;", "haproxy": "bind :80\n"}
_MAIN: Final = """
daemon off; pid {home}/nginx.pid; error_log {home}/nginx.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {home}/b; proxy_temp_path {home}/p;
    fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
    include {home}/site.conf;
}}
"""


def nginx_file(listen: str, servers: Sequence[str]) -> str:
    """Return nginx's file with these addresses, and without TLS."""
    text = _replaced(NGINX.read_text(), _TLS["nginx"], "")
    text = _replaced(text, _PLAIN["nginx"], f"listen {listen};")
    return re.sub(r" +ssl_certificate.*\n", "", _with(text, servers))


def haproxy_file(listen: str, servers: Sequence[str]) -> str:
    """Return haproxy's file with these addresses, and without TLS."""
    text = re.sub(r" +bind :443 .*\n", "", HAPROXY.read_text())
    return _with(_replaced(text, _PLAIN["haproxy"], f"bind {listen}\n"), servers)


def with_tls(
    proxy: str, text: str, ports: tuple[int, int], certificate: tuple[Path, Path], server: str
) -> str:
    """Return a proxy's file with TLS and plain ports, for a single instance of the service."""
    tls, plain = (f"127.0.0.1:{port}" for port in ports)
    text = _replaced(text, _TLS[proxy], _TLS[proxy].replace("443", tls).replace(" :", " "))
    text = _replaced(text, _PLAIN[proxy], _PLAIN[proxy].replace("80", plain).replace(" :", " "))
    cert, key = certificate
    if proxy == "nginx":
        text = _replaced(text, "/etc/ssl/infra.example.pem", str(cert))
        text = _replaced(text, "/etc/ssl/private/infra.example.key", str(key))
        text = _replaced(text, "server_name infra.example;", "server_name localhost;")
    else:
        both = cert.with_name("both.pem")
        both.write_text(cert.read_text() + key.read_text())
        text = _replaced(text, "/etc/haproxy/infra.example.pem", str(both))
    # The files' instruction: with a single instance, remove the second server.
    first, second = _SERVERS
    return re.sub(rf" +server .*{second}.*\n", "", _replaced(text, first, server))


def _with(text: str, servers: Sequence[str]) -> str:
    for named, server in zip(_SERVERS, servers, strict=True):
        text = _replaced(text, named, server)
    return text


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old} stands {text.count(old)} times in the file"
    return text.replace(old, new)


def program(name: str) -> str:
    """Return the path of an installed proxy, or skip the test."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def command(proxy: str, text: str, directory: Path) -> list[str]:
    """Write a proxy's file, and return the command that runs it in the foreground."""
    if proxy == "nginx":
        (directory / "site.conf").write_text(text)
        (directory / "nginx.conf").write_text(_MAIN.format(home=directory))
        # Large bodies are buffered in this directory, which other users may not enter.
        user = f"user {pwd.getpwuid(os.getuid()).pw_name};"
        return [program("nginx"), "-c", str(directory / "nginx.conf"), "-g", user]
    (directory / "haproxy.cfg").write_text(text)
    return [program("haproxy"), "-f", str(directory / "haproxy.cfg")]


@contextlib.contextmanager
def running(proxy: str, text: str, port: int, directory: Path) -> Iterator[None]:
    """Run a proxy with this file, which listens on the port, during the block."""
    process = subprocess.Popen(
        command(proxy, text, directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        return False

    try:
        wait_until(answers)
        yield
    finally:
        process.terminate()
        process.wait(20)
