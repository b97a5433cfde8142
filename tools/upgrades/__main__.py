"""From the release before to this one and back, under traffic: ``python -m tools.upgrades COMMIT``.

The release before is checked out beside this one. On PostgreSQL two instances serve while the
schema is migrated, and are exchanged one after the other, there and back. On SQLite, and for
``make run``, the service is stopped, migrated and started. Every answer is counted; what nobody
should be told ends the run with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.database import snapshot
from tests.support.installation import ROOT
from tests.support.postgres import running
from tests.support.server import LiveServer
from tools.upgrades.clients import Everything, Front

_SCOPES = "state:read,state:write,state:admin,state:secrets,cluster:read,cluster:write,audit:read"
_KEY_SCOPES = "apikey:read,apikey:write,state:read"
# Rows of the tables that seed_demo leaves alone, written by the release before.
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
    """Check out a commit beside this one for as long as the block."""
    path = parent / "before"
    subprocess.run(["git", "worktree", "add", "--detach", path, commit], cwd=ROOT, check=True)
    try:
        yield path
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", path], cwd=ROOT, check=True)


def fill(server: LiveServer, rows: int) -> None:
    """Fill the large tables, with the code of the server."""
    server.manage(
        "seed_demo", "--states", str(rows), "--clusters", "4", "--workloads", str(rows), "--json"
    )
    subprocess.run(
        [sys.executable, "-c", _FILL, str(rows)],
        cwd=server.root,
        env=server.environment,
        check=True,
    )


def clients(server: LiveServer, front: Front) -> Everything:
    """Make the tokens, and the clients that have them."""
    token = server.token(_SCOPES)
    names = ("--user", "operator", "--name", "clients", "--scopes", _KEY_SCOPES)
    key = json.loads(server.manage("seed_apikeys", *names, "--json"))["api_keys"][0]["secret"]
    listed = server.request("GET", "/api/v1/clusters", token=token).json()["clusters"]
    return Everything(front, token, key, [cluster["id"] for cluster in listed])


def instance(home: Path, root: Path, name: str, shared: dict[str, str]) -> LiveServer:
    """Return an instance with the code of a release, not started yet."""
    directory = home / f"{name}-{root.name}"
    directory.mkdir()
    given = {k: v for k, v in shared.items() if k not in {"VAR_DIR", "BIND"}}
    server = LiveServer(directory, **given)
    server.root = root
    return server


def rolling(old_root: Path, home: Path, rows: int, seconds: int) -> list[str]:
    """Go there and back on PostgreSQL, with two instances; return what went wrong."""
    with running() as postgres:
        first = instance(
            home, old_root, "a", {"DATABASE_URL": postgres.url, "RATE_LIMIT_FAILURES": "0"}
        )
        first.prepare()
        fill(first, rows)
        old = [first, instance(home, old_root, "b", first.environment)]
        new = [instance(home, ROOT, name, first.environment) for name in ("a", "b")]
        front = Front(*old)
        with contextlib.ExitStack() as ends:
            for server in (*old, *new):
                ends.callback(server.close)
            for server in old:
                server.start()
            everything = clients(first, front)
            everything.start()
            ends.callback(everything.stop)

            def phase(name: str) -> None:
                print(f"{time.strftime('%X')} {name}", flush=True)
                front.phase = name

            def replace(position: int, server: LiveServer) -> None:
                server.start()
                leaving = front.instances[position]
                front.instances[position] = server
                leaving.stop()
                time.sleep(seconds)

            phase("1 old code, old schema")
            time.sleep(seconds)
            phase("2 migrating")
            started = time.monotonic()
            print(new[0].manage("migrate"), f"{time.monotonic() - started:.1f} s", flush=True)
            phase("3 old code, new schema")
            time.sleep(seconds)
            phase("4 old and new code")
            replace(0, new[0])
            phase("5 new code")
            replace(1, new[1])
            phase("6 back: the old release migrates nothing")
            print(old[0].manage("migrate"), flush=True)
            phase("7 back: old and new code")
            replace(0, old[0])
            phase("8 back: old code, new schema")
            replace(1, old[1])
            everything.stop()
            tell(front, everything)
            for position, server in enumerate(new):
                server.start()
                front.instances[position] = server
            wrong = [*everything.failed, *broken_promises(new[0], everything)]
            for server in (*old, *new):
                wrong += exceptions(server)
            return wrong


def broken_promises(server: LiveServer, everything: Everything) -> list[str]:
    """Compare what is stored with what clients were told, and read every document of theirs."""
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


def tell(front: Front, everything: Everything) -> None:
    """Print how often was answered what, by phase and release."""
    for (phase, release, status), count in sorted(front.answers.items()):
        print(f"{phase:40} {release:10} {status} {count:6}")
    print(f"{everything.acknowledged()} pushes acknowledged", flush=True)


def embedded(old_root: Path, home: Path, rows: int) -> list[str]:
    """Stop, migrate and start on SQLite, and back; return what went wrong."""
    old = instance(home, old_root, "sqlite", {})
    old.prepare()
    fill(old, rows)
    new = LiveServer(old.directory, **old.environment)
    new.port = old.port
    wrong: list[str] = []
    everything = None
    for name, server in (("old", old), ("new", new), ("old again", old), ("new again", new)):
        front = Front(server)
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
                ledger.backend.server = front  # type: ignore[assignment]
            everything.start()
            time.sleep(5)
            everything.stop()
            tell(front, everything)
            wrong += broken_promises(server, everything)
    wrong += [*everything.failed] if everything else []
    return wrong + exceptions(old)


def main() -> int:
    """Run what is asked for, and return 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the release before")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of each large table")
    parser.add_argument("--seconds", type=int, default=10, help="of each phase")
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
    print(*wrong, f"{len(wrong)} things went wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
