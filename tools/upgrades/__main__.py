"""Upgrade from the previous release and back, under traffic: ``python -m tools.upgrades COMMIT``.

The program checks out the previous release in a temporary directory. On PostgreSQL, two instances
run behind nginx with ``deploy/nginx.conf`` while the owner's role migrates the schema. The
instances restart one after the other, first with the new code, then with the old code again. On
SQLite, the program stops the service, migrates the database and starts the service again. The
program counts the responses by status. The exit status is 1 after a 5xx response other than 503
with Retry-After, an unexpected 4xx response, a broken connection, a lost push or an exception in a
log.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.deployment.proxies import nginx_file
from tests.deployment.proxies import running as proxy
from tests.deployment.roles import Roles
from tests.e2e.database import snapshot
from tests.support.installation import ROOT
from tests.support.postgres import free_port, running
from tests.support.server import LiveServer
from tools.upgrades.clients import Everything, Front

_SCOPES = "state:read,state:write,state:admin,state:secrets,cluster:read,cluster:write,audit:read"
_KEY_SCOPES = "apikey:read,apikey:write,state:read"
# This script fills the tables that seed_demo leaves empty. It runs with the server's code.
_FILL = """
import datetime as dt, hashlib, sys, django
django.setup()
from django.utils import timezone
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
count, user = int(sys.argv[1]), User.objects.create(username="filler")
end = timezone.now() + dt.timedelta(days=90)
def digest(*names): return hashlib.sha256(repr(names).encode()).digest()
def fill(model, number, build):
    for start in range(0, number, 1000):
        model.objects.bulk_create([build(i) for i in range(start, min(start + 1000, number))])
fill(AuditEvent, count, lambda i: AuditEvent(
    action=("state.push", "state.read", "api_key.create")[i % 3], actor_name="ada",
    token_id=f"tok-{i % 100}", resource_id=str(i % 1000), request_id=str(i)))
fill(AccessToken, count, lambda i: AccessToken(
    kind="PERSONAL", created_by=user, name=f"t{i}", scopes=["state:read"], expires_at=end,
    digest=digest("token", i)))
fill(ApiKey, count // 10, lambda i: ApiKey(
    created_by=user, name=f"k{i}", scopes=["state:read"], expires_at=end, digest=digest("key", i)))
"""


@contextlib.contextmanager
def checkout(commit: str, parent: Path) -> Iterator[Path]:
    """Check out a commit in a worktree below ``parent`` during the block."""
    path = parent / "before"
    subprocess.run(["git", "worktree", "add", "--detach", path, commit], cwd=ROOT, check=True)
    try:
        yield path
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", path], cwd=ROOT, check=True)


def fill(server: LiveServer, rows: int) -> None:
    """Fill the large tables with the code of the server's release."""
    demo = ("seed_demo", "--clusters", "4", "--workloads", str(rows), "--json")
    bulk = ["-m", "tools.bench.bulk_states", str(rows)]
    has_bulk = (server.root / "tools" / "bench" / "bulk_states.py").exists()
    # Up to the commit 5cadb4f8, seed_demo also created any number of states.
    server.manage(*demo, *(() if has_bulk else ("--states", str(rows))))
    for arguments in (*([bulk] if has_bulk else ()), ["-c", _FILL, str(rows)]):
        subprocess.run(
            [sys.executable, *arguments], cwd=server.root, env=server.environment, check=True
        )


def clients(server: LiveServer, front: Front) -> Everything:
    """Create the tokens and return the clients that use them."""
    token = server.token(_SCOPES)
    names = ("--user", "operator", "--name", "clients", "--scopes", _KEY_SCOPES)
    key = json.loads(server.manage("seed_apikeys", *names, "--json"))["api_keys"][0]["secret"]
    listed = server.request("GET", "/api/v1/clusters", token=token).json()["clusters"]
    return Everything(front, token, key, [cluster["id"] for cluster in listed])


def instance(home: Path, root: Path, name: str, shared: dict[str, str], port: int) -> LiveServer:
    """Return an instance with the code of a release, without starting it."""
    directory = home / f"{name}-{root.name}"
    directory.mkdir()
    given = {k: v for k, v in shared.items() if k != "VAR_DIR"}
    server = LiveServer(directory, **{**given, "BIND": f"127.0.0.1:{port}"})
    server.root, server.port = root, port
    return server


def migrate(roles: Roles, root: Path) -> None:
    """Migrate the database as its owner, like the unit infra-migrate, with a release's code."""
    started = time.monotonic()
    roles.migrating.root = root
    commands = (("migrate",), ("setup_groups",), ("grant_service_role", roles.service))
    printed = roles.migrating.manage_all(*commands)
    print(*printed, f"{time.monotonic() - started:.1f} s", sep="\n", flush=True)


def rolling(old_root: Path, home: Path, rows: int, seconds: int) -> list[str]:
    """Upgrade and downgrade two instances behind nginx on PostgreSQL; return the problems."""
    with running() as postgres, contextlib.ExitStack() as ends:
        os.environ["DATABASE_URL"] = postgres.url
        ends.callback(os.environ.pop, "DATABASE_URL")
        roles = ends.enter_context(contextlib.closing(Roles(home)))
        roles.migrating.root = old_root
        roles.migrating.make_operator(("migrate", "--verbosity", "0"))
        migrate(roles, old_root)
        shared = {**roles.serving.environment, "RATE_LIMIT_FAILURES": "0"}
        ports = (free_port(), free_port())
        old = [instance(home, old_root, f"{i}", shared, port) for i, port in enumerate(ports)]
        new = [instance(home, ROOT, f"{i}", shared, port) for i, port in enumerate(ports)]
        fill(old[0], rows)
        for server in (*old, *new):
            ends.callback(server.close)
        for server in old:
            server.start()
        front = Front(free_port())
        text = nginx_file(f"127.0.0.1:{front.port}", [f"127.0.0.1:{port}" for port in ports])
        ends.enter_context(proxy("nginx", text, front.port, home))
        everything = clients(old[0], front)
        everything.start()
        ends.callback(everything.stop)

        def phase(name: str) -> None:
            print(f"{time.strftime('%X')} {name}", flush=True)
            front.phase = name

        def restart(leaving: LiveServer, coming: LiveServer) -> None:
            leaving.stop()
            coming.start()
            time.sleep(seconds)

        phase("1 old code, old schema")
        time.sleep(seconds)
        phase("2 migrating")
        migrate(roles, ROOT)
        phase("3 old code, new schema")
        time.sleep(seconds)
        phase("4 old and new code")
        restart(old[0], new[0])
        phase("5 new code")
        restart(old[1], new[1])
        phase("6 back: migrate with the old release")
        migrate(roles, old_root)
        phase("7 back: old and new code")
        restart(new[0], old[0])
        phase("8 back: old code, new schema")
        restart(new[1], old[1])
        everything.stop()
        report_result(front, everything)
        wrong = [*everything.failed, *unanswered(front)]
        restart(old[0], new[0])
        wrong += broken_promises(new[0], everything)
        for server in (*old, *new):
            wrong += exceptions(server)
        return wrong


def unanswered(front: Front) -> list[str]:
    """Return each broken connection and each 5xx, except 503 with Retry-After."""
    allowed = {"503 with Retry-After"}
    return [
        f"{phase}: {count} times {status}"
        for (phase, status), count in front.answers.items()
        if status not in allowed and not status.startswith(("2", "4"))
    ]


def broken_promises(server: LiveServer, everything: Everything) -> list[str]:
    """Return the differences between the acknowledged pushes and the stored states."""
    found = snapshot(server, *(ledger.backend for ledger in everything.ledgers))
    return [wrong for ledger in everything.ledgers for wrong in ledger.broken_promises(found)]


def exceptions(server: LiveServer) -> list[str]:
    """Return the last line of each exception in a server's log."""
    found: Counter[str] = Counter()
    for line in server.log.read_text(errors="replace").splitlines() if server.log.exists() else ():
        if '"level": "error"' in line or '"level":"error"' in line:
            event = json.loads(line)
            text = event.get("exception", "").strip().splitlines()
            found[f"{server.directory.name}: {event.get('event')}: {text[-1] if text else ''}"] += 1
    return [f"{n} times {text}" for text, n in found.items()]


def report_result(front: Front, everything: Everything) -> None:
    """Print the number of responses by phase and status."""
    for (phase, status), count in sorted(front.answers.items()):
        print(f"{phase:40} {status:20} {count:6}")
    print(f"{everything.acknowledged()} pushes acknowledged", flush=True)


def embedded(old_root: Path, home: Path, rows: int) -> list[str]:
    """Upgrade, downgrade and upgrade a stopped instance on SQLite; return the problems."""
    old = instance(home, old_root, "sqlite", {}, free_port())
    old.prepare()
    fill(old, rows)
    new = LiveServer(old.directory, **old.environment)
    new.port = old.port
    wrong: list[str] = []
    everything = None
    for name, server in (("old", old), ("new", new), ("old again", old), ("new again", new)):
        front = Front(server.port)
        front.phase = name
        started = time.monotonic()
        server.manage("migrate", "--verbosity", "0")
        print(f"{name}: migrated in {time.monotonic() - started:.1f} s", flush=True)
        server.start()
        with contextlib.closing(server):
            if everything is None:
                everything = clients(server, front)
            everything.front = front
            for ledger in everything.ledgers:
                ledger.backend.server = front
            everything.start()
            time.sleep(5)
            everything.stop()
            report_result(front, everything)
            wrong += [*unanswered(front), *broken_promises(server, everything)]
    wrong += [*everything.failed] if everything else []
    return wrong + exceptions(old)


def main() -> int:
    """Run the selected tests; return 1 after a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit of the previous release")
    parser.add_argument("--rows", type=int, default=100_000, help="number of rows per large table")
    parser.add_argument("--seconds", type=int, default=10, help="duration of each phase")
    parser.add_argument("--only", choices=("postgresql", "sqlite"))
    options = parser.parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="infra-upgrade-") as directory:
        home = Path(directory)
        with checkout(options.commit, home) as old_root:
            if options.only != "sqlite":
                wrong += rolling(old_root, home, options.rows, options.seconds)
            if options.only != "postgresql":
                wrong += embedded(old_root, home, options.rows)
    print(*wrong, f"{len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
