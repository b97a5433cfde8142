"""A TCP proxy with an adjustable delay, run on a host: ``slow_line ADDRESS PORT TARGET_PORT``.

SIGUSR1 delays each block of data by two seconds. SIGUSR2 ends the delay.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time

_SECONDS = 2


class Line:
    """The proxy with its current delay."""

    def __init__(self, address: str, port: int, target: int) -> None:
        self.seconds = 0
        self._target = (address, target)
        self._listener = socket.create_server((address, port), backlog=512)

    def serve(self) -> None:
        """Forward connections until the process ends."""
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(self._target) as server,
        ):
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(self.seconds)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Run the proxy, with a delay between the two signals."""
    address, port, target = sys.argv[1:]
    line = Line(address, int(port), int(target))
    signal.signal(signal.SIGUSR1, lambda *_: setattr(line, "seconds", _SECONDS))
    signal.signal(signal.SIGUSR2, lambda *_: setattr(line, "seconds", 0))
    line.serve()


if __name__ == "__main__":
    main()
