"""Django's PostgreSQL backend, which uses a connection only during a statement or transaction.

Django checks out a connection from the pool for the first statement of a request, and returns it at
the end of the request, so a slow request body or a slow response would occupy the connection. This
backend returns the connection when the last cursor outside a transaction is closed, and at the end
of the outermost transaction. Returning a connection requires no round trip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import DatabaseError
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg import Binary, IsolationLevel, OperationalError, _queries
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg_pool import PoolTimeout

from infra_service.lib.database.postgresql import pooler, stale_connections
from infra_service.lib.database.postgresql.schema import DatabaseSchemaEditor
from infra_service.lib.database.postgresql.stalled_server import Watch, WatchedConnection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg.abc import Buffer
    from psycopg_pool import ConnectionPool

# libpq never shrinks its buffers, so a connection that has transferred a value of this size would
# keep up to twice as much memory. Replacing the connection only takes a few milliseconds.
_LARGE: Final = 8 * 1024 * 1024
# psycopg converts the placeholders of longer statements at each execution. Its default limit would
# affect the joint lookup of a caller and a state, and cost a sixteenth of the request's CPU.
_queries.MAX_CACHED_STATEMENT_LENGTH = 8 * 1024
# The maximum time until a response, as a multiple of the statement timeout.
_LATE: Final = 1.25


class _BinaryJsonLoader(Loader):
    """A loader of binary JSON that removes the version byte and leaves decoding to Django."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data)[1:].decode()


class _ReturningCursor(CursorWrapper):
    """A cursor that returns its connection to the pool when it is closed."""

    db: DatabaseWrapper

    def execute(self, sql: Any, params: Any = None) -> Any:
        if params and Binary in map(type, params) and _any_large(params):
            self.db.discard_connection()
        try:
            return super().execute(sql, params)
        except DatabaseError as error:
            if stale_connections.is_read_only_server(error):
                self.db.lose_connection()
            raise

    def fetchone(self) -> Any:
        """Return a row or None. Large documents are read only through this method."""
        with self.db.wrap_database_errors:
            row = self.cursor.fetchone()
        if row and bytes in map(type, row) and _any_large(row):
            self.db.discard_connection()
        return row

    def close(self) -> None:
        """Close the cursor, and return the connection if it is no longer used."""
        try:
            self.cursor.close()
        finally:
            self.db.cursor_closed(self)


class _ReturningDebugCursor(_ReturningCursor, base.CursorDebugWrapper):
    """A cursor that also records statements and their durations, for tests."""


class DatabaseWrapper(base.DatabaseWrapper):
    """The database connection of a thread, which returns to the pool when it is unused."""

    SchemaEditorClass = DatabaseSchemaEditor

    #: Whether this process serves requests, so that OPTIONS["request_timeouts"] apply.
    serves_requests = False
    #: The watches by database alias, like Django's pools.
    _watches: ClassVar[dict[str, Watch]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cursors: set[CursorWrapper] = set()
        self._is_connecting = False
        self._is_discarded = False
        self._is_lost = False
        options = self.settings_dict["OPTIONS"]
        if options.get("pool"):
            options["pool"] = {**options["pool"], "connection_class": WatchedConnection}

    def connect(self) -> None:
        """Check out a connection that is already set up from the pool."""
        pool = self.pool
        if pool is not None and not pool.closed:
            self._check_out(pool)
            return
        self._is_connecting = True  # checking the server's version also opens a cursor
        try:
            super().connect()
        finally:
            self._is_connecting = False

    def _check_out(self, pool: ConnectionPool[Any]) -> None:
        """Run only the necessary part of Django's ``connect``, which takes five times as long."""
        self.in_atomic_block = self.needs_rollback = False
        self.closed_in_transaction = self.errors_occurred = False
        self.savepoint_ids, self.atomic_blocks, self.run_on_commit = [], [], []
        self.watch.refuse_if_silent()
        try:
            self.connection = stale_connections.check_out(pool)
        except PoolTimeout as error:
            self._explain_timeout(pool, error)
            raise
        if not self.connection.autocommit:  # it was returned in a transaction
            self.connection.autocommit = True
        self.autocommit = True

    @property
    def prepares_through_pooler(self) -> bool:
        """Return whether statements are prepared even through a pooler."""
        return bool(self.settings_dict["OPTIONS"].get("prepares_through_pooler"))

    def get_connection_params(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super().get_connection_params()
        for ours in ("prepares_through_pooler", "request_timeouts"):
            parameters.pop(ours, None)
        return parameters

    def _configure_connection(self, connection: Any) -> bool:
        """Set up a new connection."""
        timeouts = self.settings_dict["OPTIONS"].get("request_timeouts", {})
        if self.serves_requests and timeouts.get("statement_timeout"):
            connection.limit(
                _LATE * timeouts["statement_timeout"], self.watch if self.pool else None
            )
        connection.adapters.register_loader("jsonb", _BinaryJsonLoader)
        super()._configure_connection(connection)  # type: ignore[misc]  # its stub does not know it
        if not pooler.is_between(connection):
            self._limit(connection)
        elif not self.prepares_through_pooler:
            connection.prepare_threshold = None
        if self.pool:
            stale_connections.count(connection)
        return True  # without autocommit, the transaction of the statement must end

    def _limit(self, connection: Any) -> None:
        """Set the timeouts of requests, except through a pooler, which shares sessions."""
        timeouts = self.settings_dict["OPTIONS"].get("request_timeouts", {})
        if self.serves_requests and timeouts:
            calls = ", ".join(["set_config(%s, %s, false)"] * len(timeouts))
            values = [text for name, s in timeouts.items() for text in (name, str(int(s * 1000)))]
            connection.execute(f"SELECT {calls}", values)  # once per connection

    @property
    def watch(self) -> Watch:
        """The watch that detects a stalled server."""
        if self.alias not in self._watches:
            self._watches.setdefault(self.alias, Watch(self.get_connection_params()))
        return self._watches[self.alias]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Check out a connection from the pool, or open a connection without a pool."""
        if self.pool is None:
            self.isolation_level = IsolationLevel.READ_COMMITTED
            return WatchedConnection.connect(**conn_params)
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout as error:
            self._explain_timeout(self.pool, error)
            raise

    def _explain_timeout(self, pool: ConnectionPool[Any], error: PoolTimeout) -> None:
        """Raise an error if the pool is not exhausted, but cannot open connections.

        Raises:
            OperationalError: the pool cannot open connections, or the server is stalled.
        """
        self.watch.refuse_if_silent()
        if stale_connections.open_in(pool) < pool.max_size:
            raise OperationalError("no connection opened, see the log") from error

    def get_autocommit(self) -> bool:
        """Return whether no transaction is open, without checking out a connection."""
        return self.connection is None or self.autocommit

    def set_autocommit(self, autocommit: bool, *args: Any, **kwargs: Any) -> None:  # noqa: FBT001 - Django's signature
        """Begin or end a transaction. Ending it returns the connection to the pool."""
        if autocommit and self.connection is None and not self.in_atomic_block:
            return  # the lost connection ended the transaction
        super().set_autocommit(autocommit, *args, **kwargs)
        self._return_connection()

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return self._opened(_ReturningCursor(cursor, self))

    def make_debug_cursor(self, cursor: Any) -> Any:
        return self._opened(_ReturningDebugCursor(cursor, self))

    def _opened(self, cursor: CursorWrapper) -> CursorWrapper:
        self._cursors.add(cursor)
        return cursor

    def cursor_closed(self, cursor: CursorWrapper) -> None:
        self._cursors.discard(cursor)
        self._return_connection()

    def discard_connection(self) -> None:
        """Mark the connection to be closed and replaced instead of returned to the pool."""
        self._is_discarded = True

    def lose_connection(self) -> None:
        """Mark the connection, and all idle connections of the pool, to be closed."""
        self._is_lost = True

    def close(self) -> None:
        """Return the connection, even with open cursors."""
        self._cursors.clear()
        super().close()

    def _return_connection(self) -> None:
        is_used = self._cursors or self.in_atomic_block or not self.autocommit
        if not is_used and not self._is_connecting and self.connection is not None and self.pool:
            self._close()

    def _close(self) -> None:
        if self.connection is None or not self.pool:
            super()._close()  # type: ignore[misc]  # its stub does not know it
            return
        connection, self.connection = self.connection, None
        if self._is_lost or connection.closed:
            stale_connections.drop_all(connection)
        elif self._is_discarded:
            connection._created_at = 0.0  # the pool closes it as too old, without a warning
        self._is_discarded = self._is_lost = False
        connection._pool.putconn(
            connection
        )  # the pool of this connection, because tests replace pools


def _any_large(values: Iterable[Any]) -> bool:
    for value in values:
        held = value.obj if type(value) is Binary else value
        if (held is not value or type(value) is bytes) and len(held) >= _LARGE:
            return True
    return False
