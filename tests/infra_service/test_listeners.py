"""The close of a listening socket."""

from __future__ import annotations

import socket

import pytest

from infra_service.lib.server.listeners import ignore_new_connections


def test_only_connections_of_the_queue_are_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as waiting:
            ignore_new_connections(listener)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.5)
            accepted, peer = listener.accept()
            with accepted:
                assert peer == waiting.getsockname()
                waiting.sendall(b"request")
                assert accepted.recv(7) == b"request"
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
