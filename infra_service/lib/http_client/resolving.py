"""Resolve a name, check its addresses, and connect to one of them, before a deadline."""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
from typing import TYPE_CHECKING, Any

from infra_service.lib.error_text import reason_of
from infra_service.lib.http_client.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra_service.lib.http_client.addresses import Address
    from infra_service.lib.http_client.deadline import Deadline


def open_socket(
    host: str, port: int, deadline: Deadline, check: Callable[[Address], None] | None = None
) -> socket.socket:
    """Return a connection to the first address of the host that accepts one.

    ``check`` raises a FetchError to reject an address. If it rejects any address, no connection is
    attempted.

    Raises:
        FetchError: the name does not resolve, an address is rejected, or no address accepts a
                connection. ``__cause__`` is the error of the network.
    """
    found = _resolve(host, port, deadline)
    for *_, address in found:
        if check is not None:
            check(ipaddress.ip_address(address[0].partition("%")[0]))
    failure = OSError("the host name has no address")
    for family, *_, address in found:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left())
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return connection
    raise FetchError(f"the connection failed: {reason_of(failure)}") from failure


def _resolve(host: str, port: int, deadline: Deadline) -> Any:
    """Resolve a name in a thread, because ``getaddrinfo`` has no timeout."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=resolve, daemon=True, name="resolving").start()
    try:
        answer = answers.get(timeout=deadline.left())
    except queue.Empty:
        raise FetchError("the name was not resolved in time") from TimeoutError("timed out")
    if isinstance(answer, Exception):
        raise FetchError(f"the host name cannot be resolved: {reason_of(answer)}") from answer
    return answer
