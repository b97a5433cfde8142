"""Compare ``terraform apply`` with this service and with Terraform's ``pg`` backend.

Run ``python -m tools.bench.terraform`` (with ``DATABASE_URL``). Both use the same configuration, in
two working directories, and the same PostgreSQL. Each apply changes every resource. The applies
alternate, and the results are medians of the complete command. PostgreSQL runs on the same machine,
first without latency and then with a latency of 2 ms.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

import psycopg

from tests.e2e.terraform import BINARY, Terraform
from tests.support.server import LiveServer, live_server
from tests.support.wire import wire_to
from tools.bench.backend import WIRE_SECONDS
from tools.bench.figures import Figure, publish

ROUNDS = 40
RESOURCES = 200
CONFIGURATION = f"""
variable "turn" {{}}
resource "terraform_data" "service" {{
  count = {RESOURCES}
  input = "${{var.turn}} of service ${{count.index}}, ${{sha512(count.index)}}"
}}
"""


def applies(server: LiveServer, url: str) -> tuple[float, float]:
    """Return the median seconds of an apply with our backend and with the peer."""
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as scratch:
        address = f"{server.url}/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
        ours = Terraform(Path(scratch, "http"), address, server.token("state:read", "state:write"))
        peer = Terraform(Path(scratch, "pg"), "", "", PG_CONN_STR=f"{url}?sslmode=disable")
        (peer.directory / "backend.tf").write_text('terraform {\n  backend "pg" {}\n}\n')
        seconds: dict[str, list[float]] = {"http": [], "pg": []}
        for one in (ours, peer):
            one.write(CONFIGURATION)
            one.run("init")
        for turn in range(-1, ROUNDS):
            for one in (ours, peer):
                started = time.perf_counter()
                one.run("apply", "-auto-approve", f"-var=turn={turn}")
                if turn >= 0:
                    seconds[one.directory.name].append(time.perf_counter() - started)
        with psycopg.connect(url) as database:
            stored = database.execute("SELECT data FROM terraform_remote_state.states").fetchone()
            assert stored is not None, "the pg backend stored nothing"
    return statistics.median(seconds["http"]), statistics.median(seconds["pg"])


def main() -> None:
    if BINARY is None:
        sys.exit("neither terraform nor tofu is on the PATH")
    work = f"terraform apply, {RESOURCES} resources"
    with live_server() as server:
        url = server.environment["DATABASE_URL"]
        ours, peer = applies(server, url)
        publish(
            Figure(
                work=work,
                ours=ours,
                peer=peer,
                peer_name="Terraform's pg backend, same PostgreSQL",
                unit="s",
                # The target is equality. Medians of the same backend differ by this much.
                at_most=1.05,
            )
        )
        server.stop()
        with wire_to(url, WIRE_SECONDS) as wire:
            server.environment["DATABASE_URL"] = wire.through(url)
            server.start()
            ours, peer = applies(server, wire.through(url))
            server.environment["DATABASE_URL"] = url
            server.stop()
        publish(
            Figure(
                work=f"{work}, PostgreSQL {WIRE_SECONDS * 1000:.0f} ms away",
                ours=ours,
                peer=peer,
                peer_name="Terraform's pg backend with the same latency",
                unit="s",
                at_most=1.0,
            )
        )


if __name__ == "__main__":
    main()
