"""The watches of the replayed API server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator

from tests.apiserver import negotiation
from tests.apiserver.recording import Object, lines


class Watches:
    """The events of each watch: first the next script of its path, then the events from `send`.

    A watch ends after its timeoutSeconds, with `hang_up`, or at once without `hold`.
    """

    def __init__(self) -> None:
        self.scripts: dict[str, deque[list[bytes]]] = defaultdict(deque)
        self.hold = True
        self.hang_up = threading.Event()
        #: How long each of its timeoutSeconds lasts.
        self.second = 1.0
        #: Older versions than this are too old to be watched from.
        self.oldest = 0
        #: By path, the unsent events of each open watch, and the events for the next watch.
        self._open: dict[str, list[deque[bytes]]] = defaultdict(list)
        self._kept: dict[str, deque[bytes]] = defaultdict(deque)
        self._changed = threading.Condition()

    def send(self, path: str, *events: bytes) -> None:
        """Send events to every open watch of this path, else to the next that opens."""
        with self._changed:
            for queue in self._open[path] or [self._kept[path]]:
                queue.extend(events)
            self._changed.notify_all()

    def number_open(self, path: str) -> int:
        with self._changed:
            return len(self._open[path])

    def end_all(self) -> None:
        with self._changed:
            self.hang_up.set()
            self._changed.notify_all()

    def lines(self, path: str, query: dict[str, str], form: str) -> Iterator[bytes]:
        """Yield the events of a watch in the negotiated form."""
        if 0 < int(query.get("resourceVersion") or 0) < self.oldest:
            yield from lines("watch-410-too-old.jsonl")
            return
        ends = time.monotonic() + self.second * int(query.get("timeoutSeconds", 1800))
        for line in self._script(path):
            if form == negotiation.METADATA_LIST:
                return  # like the real server: the first event cannot be put into this form
            yield _formed(line, form)
        if not self.hold:
            return
        with self._opened(path) as queue:
            while (event := self._next(queue, ends)) is not None:
                if form == negotiation.METADATA_LIST:
                    return
                yield _formed(event, form)

    def _script(self, path: str) -> list[bytes]:
        with self._changed:
            return self.scripts[path].popleft() if self.scripts[path] else []

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[deque[bytes]]:
        """Yield the events of a watch; the next watch gets those that are unsent when it ends."""
        with self._changed:
            queue = self._kept.pop(path, deque())
            self._open[path].append(queue)
        try:
            yield queue
        finally:
            with self._changed:
                # By identity: two empty queues are equal.
                self._open[path] = [other for other in self._open[path] if other is not queue]
                self._kept[path].extend(queue)

    def _next(self, queue: deque[bytes], ends: float) -> bytes | None:
        with self._changed:
            while not queue:
                left = ends - time.monotonic()
                if self.hang_up.is_set() or left <= 0:
                    return None
                self._changed.wait(min(left, 0.5))
            return queue.popleft()


def _formed(line: bytes, form: str) -> bytes:
    if form == negotiation.WHOLE:
        return line
    try:
        event: Object = json.loads(line)
    except ValueError:
        return line
    raw = event.get("object", {})
    if event.get("type") == "ERROR" or "metadata" not in raw:
        return line
    event["object"] = partial(raw) if form == negotiation.METADATA else {"kind": form}
    return json.dumps(event).encode()


def partial(raw: Object) -> Object:
    """Return an object's metadata alone, in the form of the real server."""
    version = "meta.k8s.io/v1"
    return {
        "kind": negotiation.METADATA,
        "apiVersion": version,
        "metadata": raw["metadata"],
    }
