"""The minimum pace of clients: a timeout, which each 64 KiB extends by one second."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from typing import Any, Final

from infra_service.lib.environment import Environment

_env = Environment()

#: The time until the headers of a request must be complete, in seconds.
HEADER_TIMEOUT: Final = _env.float("HEADER_TIMEOUT", default=15)
#: The time for a body and for a response, in seconds, in addition to the time for its size.
BODY_TIMEOUT: Final = _env.float("BODY_TIMEOUT", default=30)
#: The number of bytes that extend the deadline by one second.
LEAST_RATE: Final = 64 * 1024
#: The maximum bytes of a response that are sent without a thread. A response to a request without a
#: token is always smaller.
LARGEST_REST: Final = 2 * 1024 * 1024
#: The response for which a client with ``Expect: 100-continue`` waits before it sends its body.
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# The number of bytes per blocking send.
_BLOCK: Final = 1024 * 1024


class Pace:
    """The remaining time to wait for a peer, in seconds, extended by each transferred byte.

    The remaining time never exceeds the initial time, so that a fast peer that stops does not
    occupy memory and a thread for longer than a peer that never sent anything.
    """

    def __init__(self) -> None:
        self.left = BODY_TIMEOUT

    def waited(self, seconds: float, size: int) -> None:
        """Record the duration of a transfer of ``size`` bytes."""
        self.left = min(BODY_TIMEOUT, self.left + size / LEAST_RATE - seconds)


class PacedSocket(socket.socket):
    """A connection that limits its blocking calls to the pace.

    Only the time in these calls counts, without the processing time of the service.
    """

    receiving: Pace
    sending: Pace
    #: The bytes that the worker's loop sends when the peer accepts them.
    unsent: bytearray
    #: Whether the peer waits for ``CONTINUE`` before it sends the rest of its request.
    is_expecting: bool

    def begin_request(self) -> None:
        """Reset the pace for a request and its response."""
        self.receiving, self.sending, self.unsent = Pace(), Pace(), bytearray()
        self.is_expecting = False

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive available data, or wait for data.

        Raises:
            TimeoutError: the peer is too slow.
        """
        if self.receiving.left <= 0:
            raise TimeoutError
        if self.is_expecting:
            self.is_expecting = False
            self.sendall(CONTINUE)
        self.settimeout(self.receiving.left)
        started = time.monotonic()
        received = super().recv(size, flags)
        self.receiving.waited(time.monotonic() - started, len(received))
        return received

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send as much as the peer accepts now.

        Buffer a small remainder. Wait until a large remainder is sent.

        Raises:
            BrokenPipeError: the peer has disconnected or is too slow.
        """
        rest = memoryview(data)
        if not self.unsent:
            self.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                rest = rest[self.send(rest, flags) :]
        if len(self.unsent) + len(rest) <= LARGEST_REST:
            self.unsent += rest
            return
        for waiting in (memoryview(bytes(self.unsent)), rest):
            for start in range(0, len(waiting), _BLOCK):
                self._send_waiting(waiting[start : start + _BLOCK], flags)
        self.unsent.clear()

    def _send_waiting(self, data: Any, flags: int) -> None:
        started = time.monotonic()
        self.settimeout(max(self.sending.left, 0.001) + len(data) / LEAST_RATE)
        try:
            super().sendall(data, flags)  # the timeout covers all the data
        except TimeoutError as error:
            raise BrokenPipeError(errno.EPIPE, "the client reads too slowly") from error
        self.sending.waited(time.monotonic() - started, len(data))
