"""As much of Redis as our counters use: the protocol, SET … NX, INCR, MULTI and EXEC."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from typing import Any


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        queued: list[list[str]] | None = None
        while line := self.rfile.readline():
            command = [self._argument() for _ in range(int(line[1:]))]
            self.server.commands.append(command)
            match command[0].upper():
                case "MULTI":
                    queued = []
                    self.wfile.write(b"+OK\r\n")
                case "EXEC":
                    answers = [self._run(command) for command in queued or []]
                    self.wfile.write(f"*{len(answers)}\r\n{''.join(answers)}".encode())
                    queued = None
                case _ if queued is not None:
                    queued.append(command)
                    self.wfile.write(b"+QUEUED\r\n")
                case _:
                    self.wfile.write(b"-ERR unknown command\r\n")

    def _argument(self) -> str:
        length = int(self.rfile.readline()[1:])
        return self.rfile.read(length + 2)[:-2].decode()

    def _run(self, command: list[str]) -> str:
        name, key, *_ = command
        with self.server.lock:
            counts = self.server.counts
            if name == "SET":
                if key in counts:
                    return "$-1\r\n"
                counts[key] = 0
                return "+OK\r\n"
            counts[key] += 1
            return f":{counts[key]}\r\n"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commands: list[list[str]] = []
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()


@contextlib.contextmanager
def redis_server() -> Iterator[tuple[str, list[Any]]]:
    """Run a Redis server for the duration of the block; yield its address and received commands."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/0", server.commands
        finally:
            server.shutdown()
            thread.join()
