"""A gunicorn worker that starts a thread only for a request that is ready to run.

gunicorn assigns a thread to a connection that has sent a byte, or that has been silent for five
seconds, and then waits for the rest of the request without a limit. 64 clients that send half a
header would block the service. In this worker, the loop receives requests. A thread starts when the
headers, and a body of up to 1 MiB, are complete. Larger bodies require a token, and the thread
receives them at a minimum rate.

The loop ends requests that are incomplete at their deadline. If the buffers of all requests exceed
the budget, it ends the oldest incomplete requests, or refuses a complete request if ending all of
them would not be enough.

The methods of the loop belong to gunicorn. `tests/infra_service/test_worker.py` verifies the
expected behaviour of these methods.
"""

from __future__ import annotations

import contextlib
import errno
import re
import selectors
import socket
import struct
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from gunicorn.http.errors import InvalidHeader
from gunicorn.workers.gthread import TConn, ThreadWorker

from infra_service.lib.server.arrivals import LINGER, Arrival, Departure
from infra_service.lib.server.connection_end import announce_end
from infra_service.lib.server.listeners import ignore_new_connections
from infra_service.lib.server.pace import CONTINUE, HEADER_TIMEOUT, PacedSocket
from infra_service.lib.server.server_errors import StatusCapture, refusal
from infra_service.lib.threads import ThreadPool
from infra_service.lib.uuids import uuid7

if TYPE_CHECKING:
    from concurrent.futures import Future

# The maximum bytes that a worker buffers: incomplete requests, unsent responses, and large complete
# requests that wait for a thread.
_BUDGET: Final = 32 * 1024 * 1024
# The size of complete requests that the budget ignores. Probes are smaller.
_SMALL: Final = 16 * 1024
#: The maximum number of connections that the client has not closed after the last response.
_MOST_LINGERING: Final = 250
_RECEIVED_AT_ONCE: Final = 64 * 1024
# Each probe has its own thread, because all other threads may be busy or wait for the database.
# readyz also queries the database, so it must not share a thread with healthz.
_PROBES: Final = (b"healthz", b"readyz")
_PROBE: Final = re.compile(rb"(?:GET|HEAD) /(%s)[/ ?]" % b"|".join(_PROBES))
#: The errors of a process or system without free descriptors, socket buffers or memory.
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_AT_ONCE: Final = struct.pack("ii", 1, 0)
#: The maximum number of bytes between and around the request line and the headers.
_LINE_ENDS: Final = 16


class ServiceWorker(ThreadWorker):  # type: ignore[misc,unused-ignore]
    """A worker that assigns threads only to requests that are ready to run.

    It returns errors in the format of the API.
    """

    sockets: list[Any]
    wsgi: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Connections in the order in which their wait began. Connections that linger after their
        # last response are separate, because they do not count towards the limit.
        self._waiting: dict[Any, Arrival | Departure] = {}
        self._lingering: dict[Any, Arrival | Departure] = {}
        self._connections: set[Any] = set()
        # The size of each large request that waits for a thread. The thread removes it.
        self._queued: dict[Any, int] = {}
        self._buffered = 0
        self._next_sweep = 0.0
        self._largest_head = (
            self.cfg.limit_request_line
            + self.cfg.limit_request_fields * self.cfg.limit_request_field_size
            + _LINE_ENDS
        )

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi = announce_end(self.wsgi)

    def init_process(self) -> None:
        self._probes = {probe: ThreadPool(1) for probe in _PROBES}
        for threads in self._probes.values():
            threads.submit(int)  # starts the thread, which the system may refuse later
        super().init_process()

    def get_thread_pool(self) -> ThreadPool:
        return ThreadPool(self.cfg.threads)

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001 - gunicorn's signature
        """Accept connections, or stop accepting. A stopping worker closes the port immediately.

        gunicorn would close the port last. Until then, the kernel would accept connections and
        later reset them, although a proxy could have chosen another instance.

        A stop signal can arrive at any time. gunicorn may then call this method with True although
        the worker is stopping, or twice with False. The kernel resets the connections above the
        limit, and a proxy tries another instance.
        """
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        listeners, self.sockets = self.sockets, []
        for listener in listeners:
            if self.cfg.reuse_port:  # otherwise, other processes use the same socket
                ignore_new_connections(listener)
            for _ in range(self.cfg.backlog):
                if self._is_full() or not self.accept(listener):
                    break
            listener.close()

    def accept(self, listener: Any) -> bool:
        """Accept a connection, and return whether a connection was waiting.

        `murder_pending` ends the oldest connection above the limit.
        """
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self._free_descriptor()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return False
        client = PacedSocket(fileno=accepted.detach())
        conn = TConn(self.cfg, client, address, listener.getsockname())
        self._connections.add(conn)
        self._count()
        self._wait_for(conn, self._arrival(HEADER_TIMEOUT))
        self._receive(conn, client)  # read data that has already arrived
        return True

    def _count(self) -> None:
        """Count the connections for gunicorn.

        At the limit, gunicorn stops accepting. A stopping worker exits at 0. Lingering connections
        count only while the worker stops, so that responses are not cut off.
        """
        self.nr_conns = len(self._connections) - (len(self._lingering) if self.alive else 0)

    def _arrival(self, seconds: float) -> Arrival:
        return Arrival(seconds, largest_head=self._largest_head)

    def _wait_for(self, conn: Any, pending: Arrival | Departure) -> None:
        """Wait for a connection in the loop instead of a thread."""
        conn.sock.settimeout(0)
        if isinstance(pending, Departure):
            event, react = selectors.EVENT_WRITE, self._send
        else:
            event, react = selectors.EVENT_READ, self._receive
        self.poller.register(conn.sock, event, partial(react, conn))
        (self._lingering if pending.is_ending else self._waiting)[conn] = pending
        self._buffered += pending.size

    def _forget(self, conn: Any) -> None:
        """Stop waiting for a connection."""
        if pending := self._waiting.pop(conn, None) or self._lingering.pop(conn, None):
            self._buffered -= pending.size
            self.poller.unregister(conn.sock)

    def _receive(self, conn: Any, client: PacedSocket) -> None:
        """Receive data, and assign a thread to a complete request."""
        arrival = self._waiting.get(conn) or self._lingering.get(conn)
        if not isinstance(arrival, Arrival):  # ended earlier in this iteration
            return
        try:
            data = socket.socket.recv(client, _RECEIVED_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(conn)
            return
        if arrival.is_ending and data:
            arrival.linger()
            return
        if arrival.is_ending or (arrival.is_idle and not data):
            self._drop(conn)
        else:
            self._add(conn, arrival, data)

    def _add(self, conn: Any, arrival: Arrival, data: bytes) -> None:
        size = arrival.size
        # A thread responds to a request that ends too soon.
        is_ready = not data or arrival.add(data)
        self._buffered += arrival.size - size  # without a removed header
        if arrival.is_too_long:
            self._refuse(conn, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if is_ready:
            self._forget(conn)
            if arrival.size > _SMALL:
                self._queued[conn] = arrival.size
            if self._keep_within_budget():
                self._begin(conn, bytes(arrival.received))
            else:
                self._queued.pop(conn, None)
                self._refuse(conn, HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if arrival.is_expecting:
            arrival.is_expecting = False
            with contextlib.suppress(OSError):
                conn.sock.send(CONTINUE)
        self._keep_within_budget()

    def _begin(self, conn: Any, received: bytes) -> None:
        conn.sock.begin_request()
        conn.init()
        conn.data_ready = True
        conn.parser.unreader.unread(received)
        probe = _PROBE.match(received)
        threads = self._probes[probe[1]] if probe else self.tpool
        threads.submit(self.handle, conn).add_done_callback(
            lambda done: self.method_queue.defer(self.finish_request, conn, done)
        )

    def handle(self, conn: Any) -> Any:
        """Handle a request in a thread, and stop counting its bytes towards the budget."""
        self._queued.pop(conn, None)
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Handle a request in a thread, after its headers have been read.

        A client that expects "100 Continue" receives it when the application starts to read the
        body, because the application may reject the request based on its headers.

        Raises:
            InvalidHeader: an HTTP/1.1 request has no ``Host``, or more than one (RFC 9112 §3.2).
        """
        hosts = sum(name == "HOST" for name, _ in req.headers)
        if hosts > 1 or (hosts == 0 and req.version >= (1, 1)):
            raise InvalidHeader("Host")
        conn.sock.is_expecting = req._expected_100_continue
        req._expected_100_continue = False  # gunicorn would send it immediately
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:  # noqa: FBT001 - gunicorn's signature
        """Return whether the connection can serve another request: not after an unread body."""
        conn.sock.receiving.left = 0  # do not wait for the rest
        return bool(keepalive and conn.parser.finish_body())

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Continue with a connection after its thread has finished."""
        try:
            is_kept = not fs.cancelled() and fs.result() is True
            if conn.sock.unsent:
                self._wait_for(conn, Departure(conn.sock.unsent, is_kept=is_kept))
                self._keep_within_budget()
            else:
                self._go_on(conn, is_kept=is_kept)
        except Exception:  # noqa: BLE001 - the loop must continue
            self._drop(conn)

    def _send(self, conn: Any, client: PacedSocket) -> None:
        """Send as much of a response as the client accepts."""
        departure = self._waiting.get(conn)
        if not isinstance(departure, Departure):
            return
        try:
            sent = client.send(departure.unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(conn)
            return
        departure.sent(sent)
        self._buffered -= sent
        if not departure.unsent:
            self._forget(conn)
            self._go_on(conn, is_kept=departure.is_kept)

    def _go_on(self, conn: Any, *, is_kept: bool) -> None:
        """Wait for the next request, or until the client has read the last response.

        A connection with pipelined requests never waits, so `murder_pending` could not end it.
        """
        ahead = conn.parser.unreader.take_buffered() if is_kept else b""
        if not is_kept or (ahead and self._is_full()):
            self._end(conn)
            return
        arrival = self._arrival(self.cfg.keepalive)
        self._wait_for(conn, arrival)
        if not self.alive:
            self._cap_keepalive(time.monotonic() + LINGER)
        if ahead:
            self._add(conn, arrival, ahead)

    def murder_pending(self) -> None:
        """End the oldest connections above the limit, and incomplete requests at their deadline.

        gunicorn calls this method in each iteration. At the limit, it no longer calls `accept`.
        """
        while self._waiting and self._is_full():
            self._end_oldest()
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + 0.25
        for waiting in (self._waiting, self._lingering):
            for conn in [c for c, pending in waiting.items() if pending.deadline <= now]:
                self._end_slow(conn, waiting[conn])

    def _is_full(self) -> bool:
        limit: int = self.worker_connections
        return len(self._connections) - len(self._lingering) >= limit

    def _cap_keepalive(self, deadline: float) -> None:
        """Limit the time of idle connections while the worker stops."""
        for pending in (*self._waiting.values(), *self._lingering.values()):
            if pending.is_idle:
                pending.deadline = min(pending.deadline, deadline)
        self._count()

    def _keep_within_budget(self) -> bool:
        """End the oldest connections with buffered data, unless ending all would not be enough.

        Idle connections would free nothing. Return whether the buffers are within the budget.
        """
        left = _BUDGET - sum(tuple(self._queued.values()))  # a copy, because threads remove values
        if 0 <= left < self._buffered:
            for conn, pending in list(self._waiting.items()):
                if pending.size and self._buffered > left:
                    self._end_slow(conn, pending)
        return self._buffered <= left

    def _end_oldest(self) -> None:
        if self._waiting:
            conn, pending = next(iter(self._waiting.items()))
            self._end_slow(conn, pending)

    def _free_descriptor(self) -> None:
        """Close the connection that has lingered longest, or else the oldest connection."""
        if self._lingering:
            self._drop(next(iter(self._lingering)))
        else:
            self._end_oldest()

    def _end_slow(self, conn: Any, pending: Arrival | Departure) -> None:
        """End a connection, with an error for a client that has sent data."""
        if isinstance(pending, Departure):  # otherwise, the kernel would keep the unsent data
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        if pending.is_idle or isinstance(pending, Departure):
            self._drop(conn)
        else:
            self._refuse(conn, HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, conn: Any, status: HTTPStatus) -> None:
        """End a request without a thread with an error."""
        self._forget(conn)
        with contextlib.suppress(
            OSError
        ):  # does not block: the response is short, or the client has disconnected
            conn.sock.send(refusal(status, uuid7().hex))
        self._end(conn)

    def _end(self, conn: Any) -> None:
        """Close the sending side, and close the connection after the client has closed its side."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            self._wait_for(conn, Arrival(LINGER, is_ending=True))
        except (OSError, ValueError):  # already closed
            self._drop(conn)
        if len(self._lingering) > _MOST_LINGERING:
            self._free_descriptor()
        self._count()

    def _drop(self, conn: Any) -> None:
        with contextlib.suppress(OSError, KeyError, ValueError):
            self._forget(conn)
        self._connections.discard(conn)
        self._count()
        conn.close()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Log the error with a request id, and respond with gunicorn's status."""
        request_id = uuid7().hex
        capture = StatusCapture(client)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            super().handle_error(req, capture, addr, exc)
        if capture.sent:
            status = int(capture.sent.split(b" ", 2)[1])
            with contextlib.suppress(OSError):  # the client has disconnected
                client.sendall(refusal(status, request_id))
