"""The state of connections without a thread: incomplete requests and unsent responses."""

from __future__ import annotations

import re
import time
from typing import Final

from infra_service.lib.server.pace import BODY_TIMEOUT, HEADER_TIMEOUT, LEAST_RATE

#: Bodies up to this size are received before a thread starts. Only documents and reports may be
#: larger, and their senders are authenticated first.
LARGEST_BODY: Final = 1024 * 1024
#: The time for a client to read the last response, or to finish sending, before the connection is
#: closed, in seconds.
LINGER: Final = 2.0

_END: Final = b"\r\n\r\n"
_FRAMING: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding):[ \t]*([^\r\n]*)", re.IGNORECASE
)
_EXPECTATION: Final = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class Arrival:
    """The received bytes of an incomplete request, and its deadline.

    ``is_ending`` means that the last response has been sent and the client should disconnect.
    Closing the connection immediately could destroy the response in transit (RFC 9112 §9.6).
    """

    def __init__(self, seconds: float, *, largest_head: int = 0, is_ending: bool = False) -> None:
        self.received = bytearray()
        self.deadline = time.monotonic() + seconds
        self.is_ending = is_ending
        self._ended_by = self.deadline + BODY_TIMEOUT
        #: Whether the client waits for "100 Continue" before it sends the body.
        self.is_expecting = False
        self._largest_head = largest_head
        self._complete_at = 0
        self._body_began = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether no data has arrived."""
        return not self.received

    @property
    def size(self) -> int:
        """The number of buffered bytes."""
        return len(self.received)

    @property
    def is_too_long(self) -> bool:
        """Return whether the incomplete headers exceed every limit of the server's parser.

        The parser would wait for the end of the headers before it rejects them.
        """
        return not self._complete_at and len(self.received) > self._largest_head

    def add(self, data: bytes) -> bool:
        """Add received bytes, and return whether a thread can process the request without waiting.

        The server's parser later rejects headers that are complete, but too large or invalid.
        """
        if not self.received:
            self.deadline = min(self.deadline, time.monotonic() + HEADER_TIMEOUT)
        searched = max(0, len(self.received) - len(_END))
        self.received += data
        if not self._complete_at:
            end = self.received.find(_END, searched)
            if end < 0:
                return False
            self._end_head(end)
        if len(self.received) >= self._complete_at:
            return True
        self.deadline = self._body_began + BODY_TIMEOUT + len(self.received) / LEAST_RATE
        return False

    def linger(self) -> None:
        """Extend the deadline to receive the rest of a request that already has a response.

        Otherwise, the kernel would send a reset, which may destroy the response in transit.
        """
        self.deadline = min(time.monotonic() + LINGER, self._ended_by)

    def _end_head(self, end: int) -> None:
        """Determine the number of bytes after which the request is complete."""
        self._complete_at = end + len(_END)
        headers = _FRAMING.findall(self.received, 0, end + len(_END))
        framing = {name.lower(): value for name, value in headers}
        length = framing.get(b"content-length", b"").strip()
        digits = length.lstrip(b"0")  # the server's parser accepts leading zeros
        is_small = length.isdigit() and len(digits) < 8 and int(digits or b"0") <= LARGEST_BODY  # noqa: PLR2004
        if b"transfer-encoding" in framing or not is_small:
            return
        self._body_began = time.monotonic()
        self._complete_at += int(digits or b"0")
        if len(self.received) < self._complete_at:
            head, found = _EXPECTATION.subn(b"", bytes(self.received[: end + 2]))
            self.received[: end + 2] = head
            self._complete_at -= end + 2 - len(head)
            self.is_expecting = bool(found)


class Departure:
    """The rest of a response that the client has not accepted yet, and its deadline."""

    is_idle = False
    is_ending = False

    def __init__(self, unsent: bytearray, *, is_kept: bool) -> None:
        self.unsent = unsent
        #: Whether the connection can serve another request.
        self.is_kept = is_kept
        self.deadline = time.monotonic() + BODY_TIMEOUT

    @property
    def size(self) -> int:
        """The number of buffered bytes."""
        return len(self.unsent)

    def sent(self, size: int) -> None:
        del self.unsent[:size]
        self.deadline += size / LEAST_RATE
