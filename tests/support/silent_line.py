"""A TCP relay whose network can vanish: connections stay open, but transmit nothing."""

from __future__ import annotations

import contextlib
import socket
import threading


class SilentLine:
    """Forwards connections to a local port, except between ``cut`` and `mend`.

    Bytes sent meanwhile are lost.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_cut = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop all traffic of open and new connections."""
        self._is_cut = True

    def mend(self) -> None:
        """Serve new connections; connections with lost bytes are closed."""
        self._is_cut = False
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._listener.close()
        self.mend()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self._is_cut:
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
