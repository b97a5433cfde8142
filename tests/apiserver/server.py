"""The HTTP server: pages with a continue token, gzip for large answers, errors, watches."""

from __future__ import annotations

import binascii
import contextlib
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.apiserver import negotiation
from tests.apiserver.answers import decoded, encoded, send, send_json
from tests.apiserver.recording import (
    KINDS,
    KUBE_SYSTEM,
    METRICS,
    SERVER_VERSION,
    TOKEN,
    UNAUTHORIZED,
    VERSION,
    Fault,
    Object,
    recorded,
    recorded_lists,
)
from tests.apiserver.requests import answered, signature
from tests.apiserver.watches import Watches, partial

COLLECTOR = "infra-service"
_NO_GROUP = Fault(404, b"404 page not found\n", "text/plain")
_NOT_FOUND = Fault.refused(404, "NotFound", "the server could not find the requested resource")
_NOT_RECORDED = "no real server has been asked this; see tests/apiserver/requests.py"
_ANSWERED = answered()
_GROUPS = ("/api/v1/", "/apis/apps/v1/", "/apis/metrics.k8s.io/v1beta1/")


class ReplayServer:
    """An API server with the objects `lists` and the events of watches in `watches`."""

    def __init__(self, lists: dict[str, Iterable[Object]] | None = None) -> None:
        self.lists: dict[str, list[Object]] = {
            path: sorted(items, key=_key) for path, items in (lists or recorded_lists()).items()
        }
        self.metrics: list[Object] = recorded("list-podmetrics.json")["items"]
        # Faults by request: a path, with "?watch" or "?continue" for those requests alone.
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.metrics_fault: Fault | None = None
        self.watches = Watches()
        self.version = VERSION
        self.server_version: Object = recorded("version.json")
        self.token = TOKEN
        # How many seconds its clock, and that of its metrics server, is ahead of ours.
        self.clock_lead = self.metrics_clock_lead = 0.0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        # Requests of the collector that have no recorded answer.
        self.unknown: set[str] = set()
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
        self.watches.end_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        assert not self.unknown, self.unknown

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

    def queries_of(self, path: str) -> list[dict[str, str]]:
        """Return the queries that came for a path."""
        return [query for requested, query in self.requests if requested == path]

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
                server.headers.append(dict(self.headers))
                server.before_answer(url.path, query)
                try:
                    server.answer(self, url.path, query)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def date_time_string(self, timestamp: float | None = None) -> str:
                metrics = self.path.startswith("/apis/metrics.k8s.io")
                lead = server.metrics_clock_lead if metrics else server.clock_lead
                return super().date_time_string((timestamp or time.time()) + lead)

            def finish(self) -> None:
                with contextlib.suppress(OSError):  # the client has gone
                    super().finish()

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]) -> None:
        fault = self._outsider(handler, path, query) or self._fault(path, query)
        if fault is not None:
            send(handler, fault)
            if fault.hold:
                handler.wfile.flush()
                self.watches.hang_up.wait()
            return None
        if path == SERVER_VERSION:
            return send_json(handler, self.server_version)
        form = self._form(handler, path, query)
        if isinstance(form, Fault):
            return send(handler, form)
        if path == KUBE_SYSTEM:
            raw = recorded("namespace-kube-system.json")
            return send_json(handler, raw if form == negotiation.WHOLE else {**raw, "kind": form})
        if "watch" in query:
            return self._watch(handler, path, query, form)
        return self._list(handler, path, query, form)

    def _outsider(
        self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]
    ) -> Fault | None:
        """Reject requests without a token, and requests that have no recorded answer."""
        scheme, _, token = handler.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or token != self.token:
            return UNAUTHORIZED
        request_signature = signature(path, query, dict(handler.headers))
        if handler.headers.get("User-Agent") == COLLECTOR and request_signature not in _ANSWERED:
            self.unknown.add(request_signature)
            return Fault.refused(501, "", _NOT_RECORDED)
        return None

    def _form(
        self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]
    ) -> str | Fault:
        """Return the form of the answer, or the refusal."""
        of_all, _namespace = _found(path)
        if of_all not in KINDS and path != KUBE_SYSTEM:
            return _NOT_FOUND if path.startswith(_GROUPS) else _NO_GROUP
        form = negotiation.form(
            handler.headers.get("Accept", ""),
            KINDS.get(of_all, "Namespace"),
            is_list=of_all in KINDS,
            is_watch="watch" in query,
        )
        return form if isinstance(form, Fault) else negotiation.invalid(query) or form

    def _fault(self, path: str, query: dict[str, str]) -> Fault | None:
        if path.startswith("/apis/metrics.k8s.io") and self.metrics_fault is not None:
            return self.metrics_fault
        keys = [f"{path}?{name}" for name in ("watch", "continue") if name in query] + [path]
        return next((self.faults[key].popleft() for key in keys if self.faults[key]), None)

    def _list(
        self,
        handler: BaseHTTPRequestHandler,
        path: str,
        query: dict[str, str],
        form: str,
    ) -> None:
        path, namespace = _found(path)
        items = self.metrics if path == METRICS else self.lists[path]
        if namespace:
            items = [raw for raw in items if raw["metadata"]["namespace"] == namespace]
        try:
            token = decoded(query["continue"]) if "continue" in query else {}
        except (binascii.Error, ValueError):
            return send(handler, Fault.of("bad-continue"))
        start = token.get("start", "").rstrip("\0")
        rest = _after(items, start) if start else items
        # The metrics API has no pages.
        limit = (path != METRICS and int(query.get("limit", 0))) or len(rest)
        page, left = rest[:limit], len(rest) - limit
        metadata: Object = {"resourceVersion": str(token.get("rv", self.version))}
        if left > 0:
            start = "/".join(_key(page[-1])) + "\0"
            metadata["continue"] = encoded(
                {"v": "meta.k8s.io/v1", "rv": int(self.version), "start": start}
            )
            metadata["remainingItemCount"] = left
        kind = f"{KINDS[path]}List"
        if form == negotiation.METADATA_LIST:
            kind, page = form, [partial(raw) for raw in page]
        elif form == negotiation.TABLE:
            kind, page = form, []
        return send_json(handler, {"kind": kind, "metadata": metadata, "items": page})

    def _watch(
        self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str], form: str
    ) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.flush()
        for line in self.watches.lines(path, query, form):
            data = line + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")


def _found(path: str) -> tuple[str, str]:
    """Return the list of the whole cluster that a path is a part of, and its namespace."""
    if path == KUBE_SYSTEM or "/namespaces/" not in path:
        return path, ""
    group, _, rest = path.partition("/namespaces/")
    namespace, _, plural = rest.partition("/")
    return f"{group}/{plural}", namespace


def _after(items: Any, start: str) -> Any:
    """Return those after namespace/name; a benchmark's list finds them without making the rest."""
    if hasattr(items, "after"):
        return items.after(start)
    return [raw for raw in items if "/".join(_key(raw)) > start]


def _nothing(_path: str, _query: dict[str, str]) -> None:
    pass


def _key(raw: Object) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]
