"""Direct reads of the server's database, and its consistency rules."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sqlite3
import uuid
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.e2e.backend import Backend
from tests.support.server import LiveServer

Row = dict[str, Any]

_STATES = """SELECT id, component_id, environment_id, version_number, current_version_id, serial,
    lineage, md5, size_bytes, lock_id, lock_info, lock_acquired_at FROM states_state"""
_VERSIONS = """SELECT id, state_id, number, serial, lineage, md5, size_bytes, document,
    encryption_key FROM states_stateversion"""
_EVENTS = "SELECT action, resource_id FROM apikeys_auditevent"
_UUIDS = {"id", "component_id", "environment_id", "current_version_id", "state_id", "lock_id"}


@dataclass
class Snapshot:
    """The rows of states at a point in time."""

    states: list[Row]
    versions: dict[uuid.UUID, list[Row]]
    events: dict[tuple[str, str], int] = field(default_factory=dict)

    def state(self, component_id: uuid.UUID, environment_id: uuid.UUID) -> Row | None:
        key = (component_id, environment_id)
        found = [s for s in self.states if (s["component_id"], s["environment_id"]) == key]
        assert len(found) <= 1, "two records for one component and environment"
        return found[0] if found else None

    def versions_of(self, component_id: uuid.UUID, environment_id: uuid.UUID) -> list[Row]:
        state = self.state(component_id, environment_id)
        return self.versions.get(state["id"], []) if state else []


def snapshot(server: LiveServer, *only: Backend) -> Snapshot:
    """Read all states, or those of some backends, in a single transaction."""
    url = server.environment.get("DATABASE_URL", "")
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return _read(connection, only)
    path = server.directory / "db.sqlite3"
    with closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        return _read(connection, only)


def _read(connection: Any, only: tuple[Backend, ...]) -> Snapshot:
    # Both databases accept a UUID without hyphens; SQLite requires it.
    chosen = _among("component_id", [b.component_id.hex for b in only]) if only else ""
    states = _rows(connection, _STATES + chosen)
    of_states = _among("state_id", [s["id"].hex for s in states]) if only else ""
    of_events = _among("resource_id", [str(s["id"]) for s in states]) if only else ""
    found = Snapshot(states, {})
    for version in _rows(connection, f"{_VERSIONS}{of_states} ORDER BY number"):
        found.versions.setdefault(version["state_id"], []).append(version)
    for event in _rows(connection, _EVENTS + of_events):
        key = (event["action"], event["resource_id"])
        found.events[key] = found.events.get(key, 0) + 1
    return found


def _among(column: str, values: list[str]) -> str:
    if not values:
        return " WHERE 1 = 0"
    quoted = ", ".join(f"'{value}'" for value in values)
    return f" WHERE {column} IN ({quoted})"


def versions_of(backend: Backend) -> list[Row]:
    """Return the stored versions of this state, oldest first."""
    found = snapshot(backend.server, backend)
    return found.versions_of(backend.component_id, backend.environment_id)


def problems(backend: Backend) -> list[str]:
    """Return contradictions between rows of this state."""
    return contradictions(backend.server, snapshot(backend.server, backend))


def _rows(connection: Any, query: str) -> list[Row]:
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    return [{n: _value(n, v) for n, v in zip(names, row, strict=True)} for row in cursor]


def _value(name: str, value: Any) -> Any:
    """Convert SQLite's text to PostgreSQL's type."""
    if isinstance(value, str) and name == "lock_info":
        return json.loads(value)
    return uuid.UUID(value) if isinstance(value, str) and name in _UUIDS else value


def contradictions(server: LiveServer, found: Snapshot | None = None) -> list[str]:
    """Return all contradictions between rows. An empty list means a consistent database."""
    found = snapshot(server) if found is None else found
    keys = server.environment["STATE_ENCRYPTION_KEYS"].split(",")
    wrong: list[str] = []
    for state in found.states:
        versions = found.versions.get(state["id"], [])
        wrong += _of_current(state, versions)
        wrong += _of_lock(state, found)
        wrong += _of_audit_log(state, versions, found)
        wrong += [problem for v in versions for problem in _of_document(v, keys)]
    known = {state["id"] for state in found.states}
    return wrong + [f"versions of no state: {orphan}" for orphan in found.versions.keys() - known]


def _of_current(state: Row, versions: list[Row]) -> list[str]:
    wrong = []
    numbers = [version["number"] for version in versions]
    if numbers != list(range(1, len(numbers) + 1)):
        wrong.append(f"{state['id']}: version numbers {numbers}")
    if state["version_number"] != len(numbers):
        wrong.append(f"{state['id']}: {state['version_number']} is not the highest of {numbers}")
    if not versions:
        return wrong + ([f"{state['id']}: current, of none"] if state["current_version_id"] else [])
    names = ("serial", "lineage", "md5", "size_bytes")
    last, copied = versions[-1], [state[name] for name in names]
    if state["current_version_id"] != last["id"]:
        wrong.append(f"{state['id']}: the current version is not the last")
    if copied != [last[name] for name in names]:
        wrong.append(f"{state['id']}: the record says {copied}, its version another thing")
    return wrong


def _of_lock(state: Row, found: Snapshot) -> list[str]:
    lock = (state["lock_id"], state["lock_info"], state["lock_acquired_at"])
    wrong = []
    if len({value is None for value in lock}) != 1:
        wrong.append(f"{state['id']}: half a lock {lock}")
    elif state["lock_id"] and uuid.UUID(state["lock_info"]["ID"]) != state["lock_id"]:
        wrong.append(f"{state['id']}: the lock's id and its info differ")
    taken = found.events.get(("state.lock", str(state["id"])), 0)
    freed = sum(
        found.events.get((f"state.{how}", str(state["id"])), 0)
        for how in ("unlock", "force_unlock")
    )
    if taken - freed != (state["lock_id"] is not None):
        wrong.append(f"{state['id']}: {taken} locks and {freed} unlocks in the trail")
    return wrong


def _of_audit_log(state: Row, versions: list[Row], found: Snapshot) -> list[str]:
    created = found.events.get(("state.create", str(state["id"])), 0)
    pushed = sum(
        found.events.get((action, str(state["id"])), 0) for action in ("state.push", "state.import")
    )
    if (created, pushed) == (1, len(versions)):
        return []
    return [f"{state['id']}: trail has {created} creations and {pushed} of {len(versions)} pushes"]


def _of_document(version: Row, keys: list[str]) -> list[str]:
    """Decrypt the document like an auditor, with only the key and the documentation."""
    if version["document"] is None:
        return []  # it is in the object store, where verify_states reads it
    sealed = bytes(version["document"])
    context = version["state_id"].bytes + version["id"].bytes
    for key in map(base64.b64decode, keys):
        if hashlib.sha256(key).hexdigest()[:16] == version["encryption_key"]:
            try:
                gzipped = AESGCM(key).decrypt(sealed[:12], sealed[12:], context)
            except InvalidTag:
                return [f"version {version['id']}: the document is not of this place"]
            if int.from_bytes(gzipped[4:8], "little") != version["number"]:
                return [f"version {version['id']}: the document has another number"]
            plain = gzip.decompress(gzipped)
            digest = hashlib.md5(plain, usedforsecurity=False).hexdigest()
            head = json.loads(plain)
            right = (version["md5"], version["size_bytes"], version["serial"])
            if (digest, len(plain), head.get("serial", version["serial"])) == right:
                return []
            return [f"version {version['id']}: the document is not what the row says"]
    return [f"version {version['id']}: its key is missing"]
