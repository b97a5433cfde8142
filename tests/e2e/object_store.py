"""A real S3-compatible server, and a connection to it that can be cut at critical moments."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from xml.etree import ElementTree

from tests.support.postgres import free_port
from tests.support.waiting import MAX_WAIT, wait_until

BUCKET = "states"


@contextlib.contextmanager
def running() -> Iterator[int]:
    """Run moto's server with an empty bucket, and yield its port.

    It keeps objects in memory, so it proves nothing about a store's own durability.
    """
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def has_a_bucket() -> bool:
        with contextlib.suppress(OSError):
            _requested(port, "PUT", f"/{BUCKET}")
            return True
        return False

    try:
        wait_until(has_a_bucket)
        yield port
    finally:
        process.terminate()
        process.wait()


# moto requires credentials, but does not check them.
_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"


def etags(port: int) -> list[str]:
    """Return the ETags of all objects; that of an object uploaded in N parts ends in ``-N``."""
    listing = ElementTree.fromstring(_requested(port, "GET", f"/{BUCKET}?list-type=2"))
    return [(tag.text or "").strip('"') for tag in listing.iterfind(".//{*}ETag")]


def _requested(port: int, method: str, path: str) -> bytes:
    """Return the store's answer to a request of the test."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=MAX_WAIT)
    with contextlib.closing(connection):
        connection.request(method, path, headers={"Authorization": _SIGNED})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()


class Line:
    """A TCP proxy to the store. ``fault`` selects the treatment of requests from now on.

    - ``""``: normal;
    - ``"before"``: the connection is closed before any byte of the request is forwarded;
    - ``"during"``: it is closed after a part of the request was forwarded;
    - ``"after"``: the whole request is forwarded and answered, and the answer is lost;
    - ``"object"``: the connection is closed for objects whose names contain ``broken``;
    - ``"silence"``: nothing is forwarded, and the connection stays open;
    - ``"missing"``: every object gets a 404;
    - ``"altered"``: the last byte of each part of a sent object is changed.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.fault = ""
        self.broken: set[bytes] = set()
        self.cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Return the value of STATE_STORAGE_URL."""
        return (
            f"s3://key:secret@{BUCKET}/prefix?endpoint_url=http://127.0.0.1:{self.port}"
            "&region_name=us-east-1&addressing_style=path&read_timeout=2"
        )

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as store:
            store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            paths: list[bytes] = []
            carried = (store, client, paths)
            answers = threading.Thread(target=self._answer, args=carried, daemon=True)
            answers.start()
            with contextlib.suppress(OSError):
                while data := client.recv(16384):
                    if data.startswith((b"GET /", b"HEAD /")):
                        paths.append(data.split(b" ", 2)[1])
                    if self.fault == "before":
                        break
                    if self.fault == "object" and any(part in data for part in self.broken):
                        break
                    if self.fault == "silence":
                        continue
                    if self.fault == "during":
                        store.sendall(data[: len(data) // 2])
                        break
                    store.sendall(data)
                else:
                    return
            self.cut += 1
            for end in (client, store):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _answer(self, store: socket.socket, client: socket.socket, paths: list[bytes]) -> None:
        with contextlib.suppress(OSError):
            while data := store.recv(16384):
                if self.fault == "after":
                    interim, answer = _divided(data)
                    client.sendall(interim)
                    if answer:
                        self.cut += 1
                        break
                elif self.fault == "missing" and paths and paths[-1].count(b"/") > 1:
                    client.sendall(_NOT_FOUND)
                    break
                else:
                    client.sendall(_altered(data) if self.fault == "altered" else data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


_NOT_FOUND = b"HTTP/1.1 404 NOT FOUND\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def _altered(data: bytes) -> bytes:
    """Change the last byte, unless it belongs to the header of an answer."""
    is_head_alone = data.startswith(b"HTTP/1.1") and data.endswith(b"\r\n\r\n")
    return data if is_head_alone else data[:-1] + bytes([data[-1] ^ 1])


def _divided(data: bytes) -> tuple[bytes, bytes]:
    """Split off "100 Continue", if there is one, from the answer that may follow directly."""
    if not data.startswith(b"HTTP/1.1 100"):
        return b"", data
    head, end, answer = data.partition(b"\r\n\r\n")
    return head + end, answer
