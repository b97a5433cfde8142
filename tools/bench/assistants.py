"""Compare a call of an MCP tool with the API request: ``python -m tools.bench.assistants``.

The live server contains 200 states. Each request has its own connection. The two requests
alternate, so that a noisy machine affects both. The target for the difference between the medians
is 1 ms.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
from typing import Any

from tests.e2e.backend import document
from tests.support.server import LiveServer, live_server
from tools.bench.figures import remark

STATES, ROUNDS, TARGET = 200, 1000, 1.0
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_states"}}


class Peer:
    """A connection that sends the same request repeatedly."""

    def __init__(self, server: LiveServer, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(self, method: str, path: str, body: bytes | None = None) -> float:
        """Return the milliseconds until the response is complete."""
        started = time.perf_counter()
        self.connection.request(method, path, body, self.headers)
        response = self.connection.getresponse()
        response.read()
        assert response.status == 200
        return 1000 * (time.perf_counter() - started)


def measure() -> tuple[float, float]:
    """Return the medians of the tool call and of the API request, in milliseconds."""
    taken: dict[str, list[float]] = {"tool": [], "api": []}
    with live_server(RATE_LIMIT_TOKEN="0", RATE_LIMIT_OWNER="0", WEB_WORKERS="1") as server:
        token = server.token("state:read", "state:write")
        peers: dict[str, Any] = {name: Peer(server, token) for name in taken}
        for number in range(STATES):
            path = f"/api/v1/state/at/app-{number}/production"
            peers["api"].send("POST", path, document(1))
        call = json.dumps(MESSAGE).encode()
        for number in range(ROUNDS + 50):
            tool = peers["tool"].send("POST", "/mcp", call)
            api = peers["api"].send("GET", "/api/v1/states?page_size=8")
            if number >= 50:
                taken["tool"].append(tool)
                taken["api"].append(api)
    return statistics.median(taken["tool"]), statistics.median(taken["api"])


def main() -> None:
    tool, api = measure()
    met = "met" if tool - api <= TARGET else "not met"
    remark(
        f"A call of the tool `list_states` takes {tool:.2f} ms, and the same API request takes "
        f"{api:.2f} ms (medians of {ROUNDS}; target: at most {TARGET:g} ms more; {met})."
    )


if __name__ == "__main__":
    main()
