"""A simulated kube-proxy, which forwards connections to the ready pods of a Service in rotation."""

from __future__ import annotations

import contextlib
import itertools
import socket
import socketserver
import threading
import time

from tools.live_kubernetes.api import Api
from tools.live_kubernetes.chart_pods import loopback

# The seconds until a node receives a change of the endpoints.
LAG = 1.0


class ServiceProxy(socketserver.ThreadingTCPServer):
    """A proxy on a free loopback port. Without endpoints, it closes connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, api: Api, path: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port: int = self.server_address[1]
        self._api, self._path = api, path
        self._turn = itertools.count()
        self._endpoints: list[tuple[str, int]] = []
        self._stopping = threading.Event()

    def __enter__(self) -> ServiceProxy:
        for target in (self.serve_forever, self._follow):
            threading.Thread(target=target, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.shutdown()
        self.server_close()

    def choose(self) -> tuple[str, int] | None:
        """Return the next endpoint, or None."""
        known = self._endpoints
        return known[next(self._turn) % len(known)] if known else None

    def _follow(self) -> None:
        coming: list[tuple[float, list[tuple[str, int]]]] = []
        while not self._stopping.wait(0.1):
            with contextlib.suppress(OSError):
                found = [
                    (loopback(address["ip"]), subset["ports"][0]["port"])
                    for subset in self._api.get(self._path).get("subsets", [])
                    for address in subset.get("addresses", [])
                ]
                coming.append((time.monotonic() + LAG, found))
            while coming and coming[0][0] <= time.monotonic():
                _, self._endpoints = coming.pop(0)


class _Connection(socketserver.BaseRequestHandler):
    server: ServiceProxy

    def handle(self) -> None:
        endpoint = self.server.choose()
        if endpoint is None:
            return
        with contextlib.suppress(OSError), socket.create_connection(endpoint, 3) as upstream:
            upstream.settimeout(60)
            back = threading.Thread(target=_copy, args=(upstream, self.request), daemon=True)
            back.start()
            _copy(self.request, upstream)
            back.join(60)


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the end of the source, and then close the target for sending."""
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
