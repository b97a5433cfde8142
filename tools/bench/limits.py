"""Compare the throughput of the service with its limits: ``python -m tools.bench.limits``.

The benchmark measures the requests per second of eight clients on the database in
``DATABASE_URL``: requests to a bare WSGI application on the same gunicorn, requests to an empty DRF
view of the service with and without authentication, pairs of LOCK and UNLOCK, GET requests, and
pages of a list. To measure the limit of PostgreSQL, pgbench then runs the statements of each
request with the same number of clients.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.support import postgres
from tools.bench.backend import CLIENTS, OURS, Client, prepared, started
from tools.bench.figures import remark

SECONDS = 5.0
BARE, EMPTY, AUTHENTICATED = "/bench/bare", "/bench/empty", "/bench/authenticated"
PAGE = "/api/v1/states?page_size=100"
Send = Callable[[Client], object]
WORKS: dict[str, Send] = {
    "requests to an empty DRF view": lambda client: client.send("GET", EMPTY),
    "authenticated requests to an empty DRF view": lambda client: client.send("GET", AUTHENTICATED),
    "pairs of LOCK and UNLOCK": lambda client: (
        client.send("LOCK", client.path, client.lock_body),
        client.send("UNLOCK", client.path, client.lock_body),
    ),
    "GET requests for 10 KB": lambda client: client.send("GET", client.path),
    "requests for a page of 100 states": lambda client: client.send("GET", PAGE),
}


def rate(clients: list[Client], send: Send) -> float:
    """Return the total calls of all clients per second."""
    done = [0] * len(clients)
    end = time.monotonic() + SECONDS

    def work(number: int) -> None:
        while time.monotonic() < end:
            send(clients[number])
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(clients))]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)


class Recorded(Client):
    """A client that runs its requests in this process, and records their statements."""

    def __init__(self, of: Client) -> None:
        self.path, self.lock_body, self.token = of.path, of.lock_body, of.token
        self.statements: list[str] = []

    def send(self, method: str, path: str, body: bytes = b"") -> float:
        from django.db import connection
        from django.test import Client as DjangoClient
        from django.test.utils import CaptureQueriesContext

        headers = {"Authorization": f"Bearer {self.token}", "Host": "localhost"}
        browser = DjangoClient(headers=headers)
        with CaptureQueriesContext(connection) as captured:
            answer = browser.generic(method, path, body, "application/json")
        assert answer.status_code == 200, (method, path, answer.content)
        self.statements += [query["sql"] for query in captured.captured_queries]
        return 0.0


def statements(of: Client, send: Send) -> list[str]:
    """Return the statements of a request in a form that can be repeated."""
    from apikeys.models import AuditEvent

    ids = AuditEvent.objects.values_list("pk", flat=True)
    before = set(ids.all())
    recorded = Recorded(of)
    send(recorded)
    # Compare in Python: on a fast machine, the ids exceed the maximum number of parameters of a
    # statement.
    events = [pk.hex for pk in set(ids.all()) - before]
    return [_again(text, events) for text in recorded.statements]


def _again(text: str, events: list[str]) -> str:
    """Return a statement that pgbench can repeat: with new ids for events."""
    for event in events:
        text = text.replace(f"'{event}'", "gen_random_uuid()")
    return re.sub(r"(E?)('(?:[^']|'')*')", _without_colons, " ".join(text.split()))


def _without_colons(literal: re.Match[str]) -> str:
    """Return an SQL literal without colons, which begin variables in pgbench."""
    prefix, text = literal.groups()
    if ":" not in text:
        return literal[0]
    return "E" + (text if prefix else text.replace("\\", r"\\")).replace(":", r"\x3a")


def pgbench_rate(url: str, each: list[list[str]]) -> float:
    """Return the rate at which pgbench completes the statements of a request, for all clients."""
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        program = postgres.binaries(Path(directory)) / "pgbench"
        processes = []
        for number, texts in enumerate(each):
            script = Path(directory) / f"{number}.sql"
            # The statements are prepared once, like the statements of the service.
            script.write_text("".join(f"{text};\n" for text in texts))
            command = (program, "-n", "-M", "prepared", "-T", f"{SECONDS:.0f}", "-f", script, url)
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        printed = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes)
    rates = [re.findall(r"^tps = ([\d.]+)", text, re.MULTILINE) for text in printed]
    return sum(float(found) for (found,) in rates)


def main() -> None:
    with prepared() as (server, token):
        url = server.environment["DATABASE_URL"]
        server.manage("seed_demo", "--states", "120", "--clusters", "1", "--workloads", "1")
        server.wsgi = "tools.bench.bare"
        with started(server, url) as port:
            clients = [Client(port, token, OURS, 10_000) for _ in range(CLIENTS)]
            for client in clients:
                client.cycle()
            bare = rate(clients, lambda client: client.send("GET", BARE))
            rates = {work: rate(clients, send) for work, send in WORKS.items()}
        remark(
            f"{CLIENTS} clients complete {bare:,.0f} requests to a bare WSGI application "
            "per second."
        )
        os.environ.update(server.environment)
        import django
        from django.db import connection

        django.setup()
        for work, send in WORKS.items():
            text = f"{CLIENTS} clients complete {rates[work]:,.0f} {work} per second"
            found = [statements(client, send) for client in clients]
            if any(found):
                completed = pgbench_rate(url, found)
                text += f"; pgbench, with only their SQL statements, completes {completed:,.0f}"
            remark(f"{text}.")
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
