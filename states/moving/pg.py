"""The table of Terraform's ``pg`` backend, as a source of an import."""

from __future__ import annotations

import os
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from infra_service.lib.database.connecting import with_defaults
from infra_service.lib.database.postgresql.stalled_server import WatchedConnection
from infra_service.lib.http_client.addresses import is_loopback
from states.moving.sources import SourceError, SourceState, SourceVersion, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEME: Final = "pg"
_SCHEMA: Final = "terraform_remote_state"
#: The default name of the table. OpenTofu 1.10 and newer can use another name (``table_name``).
_TABLE: Final = "states"
_ON_A_PAGE: Final = 200
_STATEMENT_SECONDS: Final = 60
#: The maximum time without a byte from the server. It is longer than the statement timeout.
_SILENT_SECONDS: Final = 75.0

#: Terraform locks a state with a session-level advisory lock on the id of its row.
_STATES: Final = sql.SQL("""
    SELECT state.name, lock.pid IS NOT NULL, activity.usename, host(activity.client_addr)
    FROM {table} state
    LEFT JOIN pg_locks lock ON lock.locktype = 'advisory' AND lock.mode = 'ExclusiveLock'
      AND lock.granted AND lock.objsubid = 1
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (lock.classid::bigint << 32) | lock.objid::bigint = state.id
    LEFT JOIN pg_stat_activity activity ON activity.pid = lock.pid
    WHERE state.data IS NOT NULL AND state.name > %s
    ORDER BY state.name LIMIT %s""")
_DIGEST: Final = sql.SQL("""
    SELECT encode(sha256(convert_to(data, 'UTF8')), 'hex'), octet_length(convert_to(data, 'UTF8'))
    FROM {table} WHERE name = %s AND data IS NOT NULL""")
_DATA: Final = sql.SQL("SELECT convert_to(data, 'UTF8') FROM {table} WHERE name = %s")


class PgTable:
    """The states in a schema. The table has one row, and thus one version, per workspace."""

    def __init__(self, parameters: dict[str, Any], schema: str, table: str) -> None:
        self._parameters = parameters
        self._schema, self._table = schema, table
        place = f"{parameters.get('host', '')}:{parameters.get('port', '')}".rstrip(":")
        self.name = f"{_SCHEME}://{place}/{parameters.get('dbname', '')}?schema={schema}"
        if table != _TABLE:
            self.name += f"&table={table}"
        self._open: psycopg.Connection[tuple[Any, ...]] | None = None

    def states(self) -> Iterator[SourceState]:
        last = ""
        while True:
            page = self._rows(_STATES, last, _ON_A_PAGE)
            for name, is_locked, user, address in page:
                holder = f"{user or 'an unknown client'}{f' ({address})' if address else ''}"
                yield SourceState(name, holder if is_locked else None)
            if len(page) < _ON_A_PAGE:
                return
            last = page[-1][0]

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        del most  # there is one version
        # A row has no version number and no time, so its content identifies the version.
        return [
            SourceVersion(digest, size_bytes=size)
            for digest, size in self._rows(_DIGEST, state.key)
        ]

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        if version.size_bytes is not None and version.size_bytes > limit:
            raise TooLargeError(version.size_bytes, limit)
        document = next((bytes(data) for (data,) in self._rows(_DATA, state.key)), b"")
        version.check_digest(document)
        return document

    def _rows(self, query: sql.SQL, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query in its own transaction, because a long transaction would delay VACUUM."""
        composed = query.format(table=sql.Identifier(self._schema, self._table))
        with self._answering():
            connection = self._connection()
            with connection.transaction():
                connection.execute(
                    "SELECT set_config('statement_timeout', %s, true)",
                    (f"{_STATEMENT_SECONDS}s",),
                )
                return connection.execute(composed, values, binary=True).fetchall()

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._open is None or self._open.closed:
            connection = WatchedConnection.connect(
                make_conninfo("", **self._parameters), autocommit=True
            )
            connection.limit(_SILENT_SECONDS)
            connection.read_only = True
            # Without prepared statements: a pooler may run each transaction in a different session.
            connection.prepare_threshold = None
            self._open = connection
            weakref.finalize(self, connection.close)
        return self._open

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Convert errors of PostgreSQL into a SourceError.

        Raises:
            SourceError: PostgreSQL refused the query, or did not respond.
        """
        try:
            yield
        except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as error:
            raise SourceError(
                f"The schema {self._schema} has no table {self._table} of the pg backend. Select "
                "another schema or table with ?schema=…&table=…, like schema_name and table_name "
                "in the backend block."
            ) from error
        except errors.InsufficientPrivilege as error:
            raise SourceError(
                f"The user cannot read {self._schema}.{self._table}. Grant USAGE ON SCHEMA "
                f"{self._schema} and SELECT ON {self._schema}.{self._table}."
            ) from error
        except (UnicodeDecodeError, OverflowError) as error:
            raise SourceError("The response of PostgreSQL has an unknown format.") from error
        except psycopg.Error as error:
            detail = error.diag.message_primary or " ".join(str(error).split())
            raise SourceError(
                f"PostgreSQL: {detail}. The password is taken from PGPASSWORD or ~/.pgpass."
            ) from error


def open_table(text: str) -> PgTable:
    """Return the table of ``pg://user@host/database?schema=…&table=…``.

    All other parameters, such as ``sslmode``, are passed to libpq.

    Raises:
        SourceError: the address does not have this form. The message does not quote the address,
        which may contain a password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
        given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise SourceError(_FORM) from error
    if parts.fragment:
        raise SourceError(_FORM)
    schema, table = given.pop("schema", _SCHEMA), given.pop("table", _TABLE)
    parameters = {
        "connect_timeout": "10",
        "application_name": "import_states",
        "client_encoding": "UTF8",
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "dbname": unquote(parts.path.strip("/")),
        **given,
    }
    host = parameters["host"]
    is_remote = host and not host.startswith("/") and not is_loopback(host)
    if is_remote and "PGSSLMODE" not in os.environ:
        # The default of Terraform's pg backend.
        parameters.setdefault("sslmode", "require")
    named = {name: value for name, value in parameters.items() if value}
    # Connected like a replica, because a standby can also serve as the source.
    return PgTable(with_defaults(named, is_replica=True), schema, table)


_FORM: Final = (
    "The source must have the form pg://user@host:port/database?schema=NAME. The default schema is "
    "terraform_remote_state. Set the password with PGPASSWORD or ~/.pgpass."
)
