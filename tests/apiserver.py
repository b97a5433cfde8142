"""An API server of Kubernetes that plays recordings, on loopback and in a thread of its own.

It answers as the recorded one did: pages with a continue token, gzip for what is large, the Status
objects of its errors, watches with bookmarks in chunks. Tests queue faults and watches on it.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

RECORDING = Path(__file__).parent / "workloads" / "fixtures" / "kubernetes-1.20"
TOKEN = "replayed-token"
VERSION = "1500"

DEPLOYMENTS = "/apis/apps/v1/deployments"
STATEFULSETS = "/apis/apps/v1/statefulsets"
DAEMONSETS = "/apis/apps/v1/daemonsets"
REPLICASETS = "/apis/apps/v1/replicasets"
PODS = "/api/v1/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
LISTS = {
    path: path.rpartition("/")[2]
    for path in (DEPLOYMENTS, STATEFULSETS, DAEMONSETS, REPLICASETS, PODS)
}

Object = dict[str, Any]


def recorded(name: str) -> Any:
    return json.loads((RECORDING / name).read_text())


def recorded_lists() -> dict[str, list[Object]]:
    return {path: recorded(f"list-{name}.json")["items"] for path, name in LISTS.items()}


def lines(name: str) -> list[bytes]:
    return (RECORDING / name).read_bytes().splitlines()


def event(kind: str, raw: Object) -> bytes:
    return json.dumps({"type": kind, "object": raw}).encode()


@dataclass
class Fault:
    """An answer in place of the right one.

    `cut` ends the connection after so many bytes; with `hold` not before `hang_up`.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hold: bool = False

    @classmethod
    def of(cls, name: str, status: int | None = None, **headers: str) -> Fault:
        """Play a recorded error."""
        raw = recorded(f"error-{name}.json")
        if "_non_json_body" in raw:
            body = raw["_non_json_body"].encode()
            return cls(raw["http_status"], body, raw.get("_content_type", "text/plain"), headers)
        return cls(status or raw["code"], json.dumps(raw).encode(), headers=headers)


EXPIRED = Fault.of("410-expired-continue")
FORBIDDEN = Fault.of("forbidden")
UNAUTHORIZED = Fault.of("unauthorized")
NO_METRICS = Fault.of("no-metrics-api")
DEAD_METRICS = Fault.of("metrics-backend-down")
UNAVAILABLE = Fault(503, b"starting up\n", "text/plain", {"Retry-After": "0"})


class ReplayServer:
    """`lists` is what the cluster holds; a watch sends what `watches` has for its path, then
    holds the line until `hang_up`, or ends at once when nothing is held (`hold`).
    """

    def __init__(self, lists: dict[str, Iterable[Object]] | None = None) -> None:
        self.lists: dict[str, list[Object]] = {
            path: sorted(items, key=_key) for path, items in (lists or recorded_lists()).items()
        }
        self.metrics: list[Object] = recorded("list-podmetrics.json")["items"]
        # Faults by what is asked: a path, with "?watch" or "?continue" for those alone.
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.metrics_fault: Fault | None = None
        self.watches: dict[str, deque[list[bytes]]] = defaultdict(deque)
        self.hold = True
        self.hang_up = threading.Event()
        self.version = VERSION
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.accept_encodings: list[str] = []
        self.before_answer: Callable[[str, dict[str, str]], None] = _nothing
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def kubeconfig(self, directory: Path, *contexts: str, token: str = TOKEN) -> Path:
        """Write a kubeconfig; all its contexts lead here."""
        path = directory / "kubeconfig"
        named = contexts or ("replay",)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": named[0],
            "clusters": [{"name": "replay", "cluster": {"server": self.url}}],
            "users": [{"name": "collector", "user": {"token": token}}],
            "contexts": [
                {"name": name, "context": {"cluster": "replay", "user": "collector"}}
                for name in named
            ],
        }
        path.write_text(json.dumps(config))
        return path

    def asked(self, path: str) -> list[dict[str, str]]:
        """Return the queries that came for a path."""
        return [query for asked, query in self.requests if asked == path]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet, or each answer waits 40 ms
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = dict(parse_qsl(url.query))
                server.requests.append((url.path, query))
                server.accept_encodings.append(self.headers.get("Accept-Encoding", ""))
                server.before_answer(url.path, query)
                try:
                    server.answer(self, url.path, query)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]) -> None:
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _send(handler, UNAUTHORIZED)
        fault = self._fault(path, query)
        if fault is not None:
            _send(handler, fault)
            if fault.hold:
                handler.wfile.flush()
                self.hang_up.wait()
            return None
        if path == KUBE_SYSTEM:
            return _send_json(handler, recorded("namespace-kube-system.json"))
        if path.startswith(METRICS):
            namespace = path.split("/")[-2]
            items = [raw for raw in self.metrics if raw["metadata"]["namespace"] == namespace]
            return _send_json(handler, {"kind": "PodMetricsList", "metadata": {}, "items": items})
        if "watch" in query:
            return self._watch(handler, path)
        return self._list(handler, path, query)

    def _fault(self, path: str, query: dict[str, str]) -> Fault | None:
        if path.startswith(METRICS) and self.metrics_fault is not None:
            return self.metrics_fault
        keys = [f"{path}?{name}" for name in ("watch", "continue") if name in query] + [path]
        return next((self.faults[key].popleft() for key in keys if self.faults[key]), None)

    def _list(self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]) -> None:
        items = self.lists[path]
        try:
            token = _decoded(query["continue"]) if "continue" in query else {}
        except (binascii.Error, ValueError):
            return _send(handler, Fault.of("bad-continue"))
        start = token.get("start", "").rstrip("\0")
        rest = _after(items, start) if start else items
        limit = int(query.get("limit", 0)) or len(rest)
        page, left = rest[:limit], len(rest) - limit
        metadata: Object = {"resourceVersion": str(token.get("rv", self.version))}
        if left > 0:
            start = "/".join(_key(page[-1])) + "\0"
            metadata["continue"] = _encoded(
                {"v": "meta.k8s.io/v1", "rv": int(self.version), "start": start}
            )
            metadata["remainingItemCount"] = left
        if "as=PartialObjectMetadataList" in handler.headers.get("Accept", ""):
            page = [{"metadata": raw["metadata"]} for raw in page]
        return _send_json(handler, {"kind": "List", "metadata": metadata, "items": page})

    def _watch(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.flush()
        for line in self._script(path):
            data = line + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()
        if self.hold:
            self.hang_up.wait()
        handler.wfile.write(b"0\r\n\r\n")

    def _script(self, path: str) -> Iterator[bytes]:
        if self.watches[path]:
            yield from self.watches[path].popleft()


def _encoded(token: Object) -> str:
    text = json.dumps(token, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(token: str) -> Object:
    decoded: Object = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return decoded


def _after(items: Any, start: str) -> Any:
    """Return those after namespace/name; a benchmark's list finds them without making the rest."""
    if hasattr(items, "after"):
        return items.after(start)
    return [raw for raw in items if "/".join(_key(raw)) > start]


def _nothing(_path: str, _query: dict[str, str]) -> None:
    pass


def _key(raw: Object) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


def _send_json(handler: BaseHTTPRequestHandler, value: Any) -> None:
    body = json.dumps(value).encode()
    # As the API server does: only what is worth it.
    if len(body) > 128 * 1024 and "gzip" in handler.headers.get("Accept-Encoding", ""):
        _send(handler, Fault(200, gzip.compress(body, 1), headers={"Content-Encoding": "gzip"}))
    else:
        _send(handler, Fault(200, body))


def _send(handler: BaseHTTPRequestHandler, answer: Fault) -> None:
    handler.send_response(answer.status)
    handler.send_header("Content-Type", answer.content_type)
    handler.send_header("Content-Length", str(len(answer.body)))
    for name, value in answer.headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
    if answer.cut is not None:
        handler.close_connection = True
