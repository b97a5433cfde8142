"""Reading the table of the pg backend: states.moving.pg, on a real PostgreSQL."""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from states.moving import pg
from states.moving.pg import PgTable
from states.moving.sources import (
    SourceError,
    SourceState,
    SourceVersion,
    TooLargeError,
    open_source,
)
from tests.support.postgres import free_port
from tests.support.silent_line import SilentLine

URL = os.environ.get("DATABASE_URL", "")
LIMIT = 1000
DOCUMENT = '{"serial": 1, "ключ": "\U0001f600"}'

on_postgresql = pytest.mark.skipif(
    not URL.startswith("postgres"), reason="PostgreSQL is what it reads"
)


class Backend:
    """The table in a schema of its own, as Terraform 1.11 makes it."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.schema = f"remote-state-{uuid.uuid4()}"
        self.connection = connection
        self.run("CREATE SCHEMA {schema}")
        self.run("CREATE SEQUENCE {schema}.ids AS bigint START 5000000000")
        self.run(
            "CREATE TABLE {schema}.states (id bigint NOT NULL DEFAULT nextval('{schema}.ids') "
            "PRIMARY KEY, name text UNIQUE, data text)"
        )

    def run(self, statement: str, *values: object) -> None:
        name = sql.Identifier(self.schema)
        # psycopg.sql quotes the schema name, because it may contain dashes.
        self.connection.execute(sql.SQL(statement).format(schema=name), values or None)

    def put(self, name: str, data: str | None) -> None:
        self.run(
            "INSERT INTO {schema}.states (name, data) VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET data = excluded.data",
            name,
            data,
        )

    @property
    def address(self) -> str:
        return f"pg{URL.removeprefix('postgres')}?schema={self.schema}"

    def source(self) -> PgTable:
        source = open_source(self.address)
        assert isinstance(source, PgTable)
        return source


@pytest.fixture
def backend() -> Iterator[Backend]:
    with psycopg.connect(URL, autocommit=True) as connection:
        backend = Backend(connection)
        yield backend
        backend.run("DROP SCHEMA {schema} CASCADE")


@on_postgresql
def test_states_are_listed_with_their_documents(backend: Backend) -> None:
    backend.put("prod", DOCUMENT)
    backend.put("default", "{}")
    backend.put("without", None)
    source = backend.source()

    assert [state.key for state in source.states()] == ["default", "prod"]
    (version,) = source.versions(SourceState("prod"), None)
    content = DOCUMENT.encode()
    digest = hashlib.sha256(content).hexdigest()
    assert version == SourceVersion(digest, size_bytes=len(content))
    assert source.read(SourceState("prod"), version, LIMIT) == content
    assert source.versions(SourceState("without"), None) == []


@on_postgresql
def test_table_can_have_another_name(backend: Backend) -> None:
    """OpenTofu has an option for the name, so configurations can share a schema."""
    backend.put("default", "{}")
    backend.run("ALTER TABLE {schema}.states RENAME TO network")

    source = open_source(f"{backend.address}&table=network")

    assert [state.key for state in source.states()] == ["default"]
    assert source.name.endswith(f"?schema={backend.schema}&table=network")


@on_postgresql
def test_states_are_paginated(backend: Backend) -> None:
    backend.run(
        "INSERT INTO {schema}.states (name, data) "
        "SELECT 'w' || lpad(number::text, 4, '0'), '{{}}' FROM generate_series(1, 450) number"
    )

    names = [state.key for state in backend.source().states()]

    assert names == [f"w{number:04}" for number in range(1, 451)]


@on_postgresql
def test_locks_are_reported(backend: Backend) -> None:
    backend.put("free", "{}")
    backend.put("held", "{}")
    backend.run("SELECT pg_advisory_lock(id) FROM {schema}.states WHERE name = 'held'")
    backend.run("SELECT pg_advisory_lock(-1)")

    holders = {state.key: state.locked_by for state in backend.source().states()}

    user = backend.connection.info.user
    assert holders == {"free": None, "held": f"{user} (127.0.0.1)"}


@on_postgresql
def test_state_changed_in_the_meantime_is_reported(backend: Backend) -> None:
    backend.put("prod", "{}")
    source = backend.source()
    (version,) = source.versions(SourceState("prod"), 1)
    backend.put("prod", "[]")

    with pytest.raises(SourceError, match="changed while it was being read"):
        source.read(SourceState("prod"), version, LIMIT)


@on_postgresql
def test_too_large_is_not_read(backend: Backend) -> None:
    backend.put("prod", "é" * 501)
    source = backend.source()
    (version,) = source.versions(SourceState("prod"), 1)

    with pytest.raises(TooLargeError, match="1002 bytes"):
        source.read(SourceState("prod"), version, LIMIT)


@on_postgresql
def test_connection_is_read_only(backend: Backend) -> None:
    source = backend.source()
    list(source.states())

    assert source._open is not None
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), source._open.transaction():
        source._open.execute("CREATE TABLE something ()")


@on_postgresql
def test_connection_that_broke_is_opened_again(backend: Backend) -> None:
    backend.put("prod", "{}")
    source = backend.source()
    list(source.states())
    assert source._open is not None
    backend.connection.execute("SELECT pg_terminate_backend(%s)", [source._open.info.backend_pid])
    with pytest.raises(SourceError, match="PostgreSQL: "):
        list(source.states())

    assert [state.key for state in source.states()] == ["prod"]


@on_postgresql
def test_silent_server_is_reported(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new connection and a statement on an open connection both time out."""
    monkeypatch.setattr(pg, "_SILENT_SECONDS", 1.0)
    backend.put("prod", "{}")
    parts = urlsplit(URL)
    line = SilentLine(parts.port or 5432)
    with closing(line):
        address = f"pg://{parts.username}@127.0.0.1:{line.port}{parts.path}"
        source = open_source(f"{address}?schema={backend.schema}&connect_timeout=2")
        assert [state.key for state in source.states()] == ["prod"]
        line.cut()
        for sentence in ("does not respond", "timeout"):
            started = time.monotonic()
            with pytest.raises(SourceError, match=f"PostgreSQL: .*{sentence}"):
                list(source.states())
            assert time.monotonic() - started < 30


def test_a_dead_host_is_noticed() -> None:
    source = open_source("pg://somebody@127.0.0.1/database?keepalives_idle=9")
    assert isinstance(source, PgTable)
    given = {name: source._parameters[name] for name in ("keepalives_idle", "tcp_user_timeout")}
    assert given == {"keepalives_idle": "9", "tcp_user_timeout": 6000}
    assert source._parameters["target_session_attrs"] == "any"


class TestSentences:
    @on_postgresql
    def test_missing_table_is_reported(self) -> None:
        source = open_source(f"pg{URL.removeprefix('postgres')}?schema=none")

        with pytest.raises(SourceError, match="The schema none has no table states of the pg"):
            list(source.states())

    @on_postgresql
    def test_missing_database_is_reported(self) -> None:
        parts = urlsplit(URL)
        source = open_source(f"pg://{parts.netloc}/none")

        with pytest.raises(SourceError, match=r'PostgreSQL: .*database "none" does not exist'):
            list(source.states())

    @on_postgresql
    def test_user_without_read_permission(self, backend: Backend) -> None:
        user = f"reader_{uuid.uuid4().hex}"
        backend.connection.execute(sql.SQL("CREATE USER {}").format(sql.Identifier(user)))
        parts = urlsplit(URL)
        host = f"{parts.hostname}:{parts.port}"
        try:
            source = open_source(f"pg://{user}@{host}{parts.path}?schema={backend.schema}")
            with pytest.raises(SourceError, match=r"cannot read .*\. Grant USAGE ON SCHEMA"):
                list(source.states())
        finally:
            backend.connection.execute(sql.SQL("DROP USER {}").format(sql.Identifier(user)))

    def test_unreachable_server_is_reported(self) -> None:
        source = open_source(f"pg://ada:very-secret@127.0.0.1:{free_port()}/states")

        with pytest.raises(SourceError, match=r"PostgreSQL: .*refused.* PGPASSWORD") as raised:
            list(source.states())

        assert "very-secret" not in str(raised.value)

    def test_unknown_libpq_parameter_is_reported(self) -> None:
        source = open_source("pg://ada:very-secret@127.0.0.1/states?nonsense=1")

        with pytest.raises(SourceError, match='invalid connection option "nonsense"') as raised:
            list(source.states())

        assert "very-secret" not in str(raised.value)

    @pytest.mark.parametrize(
        "text", ["pg://host:very-secret/states", "pg://host/states?very-secret", "pg://h/s#f"]
    )
    def test_source_address_is_validated(self, text: str) -> None:
        with pytest.raises(SourceError, match="must have the form pg://user@host") as raised:
            open_source(text)

        assert "very-secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pg://ada:very-secret@db.example:5433/states", "pg://db.example:5433/states"),
        ("pg://db.example/states?sslmode=disable&password=very-secret", "pg://db.example/states"),
        ("pg:///states?host=/run/postgresql", "pg:///run/postgresql/states"),
    ],
)
def test_name_holds_the_place_and_no_secret(text: str, name: str) -> None:
    assert open_source(text).name == f"{name}?schema=terraform_remote_state"


@pytest.mark.parametrize(
    ("host", "sslmode"),
    [("db.example", "require"), ("127.0.0.1", None), ("localhost", None), ("", None)],
)
def test_tls_is_demanded_of_another_machine(
    host: str, sslmode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)
    source = open_source(f"pg://{host}/states")
    assert isinstance(source, PgTable)

    assert source._parameters.get("sslmode") == sslmode
