"""Classify database exceptions as retryable conflicts, failures or programming errors.

Only this module classifies exceptions, by the SQLSTATE of PostgreSQL and the result code of SQLite.
Codes that are missing here are programming errors and cause a 500. ``wait`` is the time in seconds
until a client may retry the request. Without ``wait``, retries cannot succeed until an operator has
fixed the cause.
"""

from __future__ import annotations

import sqlite3
from http import HTTPStatus
from typing import Any, Final, TypeGuard

from django.db import Error, InterfaceError, OperationalError
from rest_framework.exceptions import APIException

from infra_service.lib.database import citus


class DatabaseFailure(APIException):
    """A failure of the database that the request did not cause."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    meaning: str
    wait: int | None = None


class DatabaseUnavailable(DatabaseFailure):
    meaning = "The database cannot be reached, or the connection to it was lost."
    default_code = "DATABASE_UNAVAILABLE"
    default_detail = "The database is unavailable. Try again."
    wait = 2


class DatabaseBusy(DatabaseFailure):
    meaning = (
        "All database connections are in use or, with SQLite, another writer is taking too long."
    )
    default_code = "DATABASE_BUSY"
    default_detail = "The database is overloaded. Try again."
    wait = 2


class DatabaseConflict(DatabaseFailure):
    meaning = "Concurrent writers repeatedly changed the object first."
    default_code = "WRITE_CONFLICT"
    default_detail = "Too many concurrent writers. Send the request again."
    wait = 1


class DatabaseLockTimeout(DatabaseFailure):
    meaning = "Another transaction locked the same row for too long."
    default_code = "DATABASE_LOCK_TIMEOUT"
    default_detail = "A concurrent change to the same object is taking too long. Try again."
    wait = 5


class DatabaseStatementTimeout(DatabaseFailure):
    meaning = "A statement exceeded its time limit and was cancelled. Request less data."
    default_code = "DATABASE_STATEMENT_TIMEOUT"
    default_detail = "The database exceeded the time limit. Request less data, or try again later."
    wait = 30


class DatabaseTransactionTimeout(DatabaseFailure):
    meaning = "The database closed a transaction that the service did not continue in time."
    default_code = "DATABASE_TRANSACTION_TIMEOUT"
    default_detail = "The service was too slow for this transaction. Try again."
    wait = 5


class DatabaseReadOnly(DatabaseFailure):
    meaning = "The database is read-only: it is a standby, or is configured as read-only."
    default_code = "DATABASE_READ_ONLY"
    default_detail = "The database is currently read-only. Try again later."
    wait = 5


class DatabaseOutOfMemory(DatabaseFailure):
    meaning = "The database has too little memory for the request."
    default_code = "DATABASE_OUT_OF_MEMORY"
    default_detail = (
        "The database currently has too little memory for the request. Try again later."
    )
    wait = 30


class DatabaseFull(DatabaseFailure):
    meaning = "The database's disk is full. An operator must free space."
    default_code = "DATABASE_FULL"
    default_detail = "The database's disk is full. Retries do not help. Contact an operator."


class DatabaseDiskError(DatabaseFailure):
    meaning = (
        "The database cannot read or write its files. An operator must check the disk of the "
        "database."
    )
    default_code = "DATABASE_DISK_ERROR"
    default_detail = "The database cannot use its disk. Retries do not help. Contact an operator."


#: All failures, for the description of the API.
FAILURES: Final[tuple[type[DatabaseFailure], ...]] = (
    DatabaseUnavailable, DatabaseBusy, DatabaseConflict, DatabaseLockTimeout,
    DatabaseStatementTimeout, DatabaseTransactionTimeout, DatabaseReadOnly, DatabaseOutOfMemory,
    DatabaseFull, DatabaseDiskError,
)  # fmt: skip

#: The beginnings of the messages of Citus if it loses a worker before the commit.
_LOST_WORKER: Final = (
    "failure on connection marked as essential",
    "failed to COPY to shard",
    "failed to complete COPY",
    "failed to prepare transaction",
    "server closed the connection unexpectedly",
    "could not receive data from server",
    "could not send data to server",
    "no connection to the server",
    "SSL SYSCALL error",
    "SSL connection has been closed unexpectedly",
)

#: PostgreSQL has no SQLSTATE for a full quota, and reports an internal error.
_FULL_QUOTA: Final = "Disk quota exceeded"

# Complete codes take precedence over classes, which are the first two characters of codes.
_BY_SQLSTATE: Final[dict[str, type[DatabaseFailure]]] = {
    "08": DatabaseUnavailable,  # connection exceptions
    "25006": DatabaseReadOnly,  # read_only_sql_transaction
    "25P03": DatabaseTransactionTimeout,  # idle_in_transaction_session_timeout
    "25P04": DatabaseTransactionTimeout,  # transaction_timeout
    "40003": DatabaseUnavailable,  # statement_completion_unknown
    "40": DatabaseConflict,  # rolled back: serialization_failure, deadlock_detected
    "53100": DatabaseFull,  # disk_full
    "53200": DatabaseOutOfMemory,  # out_of_memory
    "53": DatabaseBusy,  # insufficient resources: too_many_connections
    "55P03": DatabaseLockTimeout,  # lock_not_available
    "57014": DatabaseStatementTimeout,  # query_canceled
    "57": DatabaseUnavailable,  # admin_shutdown, crash_shutdown, cannot_connect_now, …
    "58": DatabaseDiskError,  # system errors: io_error
    "72": DatabaseConflict,  # snapshot_too_old, up to PostgreSQL 16
    "XX001": DatabaseDiskError,  # data_corrupted: a damaged page
    "XX002": DatabaseDiskError,  # index_corrupted
}
# The primary result code is the last byte of an extended code.
_BY_SQLITE: Final[dict[int, type[DatabaseFailure]]] = {
    sqlite3.SQLITE_BUSY: DatabaseBusy,
    sqlite3.SQLITE_LOCKED: DatabaseBusy,
    sqlite3.SQLITE_PROTOCOL: DatabaseBusy,
    sqlite3.SQLITE_READONLY: DatabaseReadOnly,
    sqlite3.SQLITE_FULL: DatabaseFull,
    sqlite3.SQLITE_IOERR: DatabaseDiskError,
    sqlite3.SQLITE_CORRUPT: DatabaseDiskError,
    sqlite3.SQLITE_NOTADB: DatabaseDiskError,
    sqlite3.SQLITE_CANTOPEN: DatabaseUnavailable,
    sqlite3.SQLITE_NOMEM: DatabaseOutOfMemory,
}

#: undefined_table, undefined_column, insufficient_privilege, invalid_schema_name.
_NOT_READY: Final = frozenset({"42P01", "42703", "42501", "3F000"})
_NOT_READY_IN_SQLITE: Final = ("no such table", "no such column")


def failure_of(error: BaseException | None) -> DatabaseFailure | None:
    """Return the failure for an exception, or None for a programming error."""
    kind = _kind_of(error) if isinstance(error, Error) else None
    return None if kind is None else kind()


def is_failure(error: BaseException) -> TypeGuard[Error]:
    """Return whether the database failed. Otherwise, the statement or its values are wrong."""
    return isinstance(error, InterfaceError) or failure_of(error) is not None


def explanation_of(error: Error) -> str | None:
    """Return a line for the operator of a command, or None for a programming error."""
    # A failure of migrate contains the exception of the driver in its context.
    cause: Any = error.__cause__ or getattr(error.__context__, "__cause__", None) or error
    problem = str(cause).partition("\n")[0]
    if kind := _kind_of(error):
        return f"{kind.meaning} Check DATABASE_URL and the database ({problem})."
    if getattr(cause, "sqlstate", None) in _NOT_READY or problem.startswith(_NOT_READY_IN_SQLITE):
        return (
            f"The database is not ready for this command: {problem}. Run 'manage.py migrate', on "
            "PostgreSQL as the owner of the tables and followed by 'manage.py grant_service_role'."
        )
    return None


def is_repeatable(error: Error) -> bool:
    """Return whether the database rolled back the transaction because of a conflict."""
    return _kind_of(error) is DatabaseConflict


def is_of_worker(error: Error) -> bool:
    """Return whether the coordinator of Citus reported the loss of a worker.

    Only the rows on this worker are then unavailable.
    """
    cause = error.__cause__
    # Without a SQLSTATE, the driver lost its own connection to the coordinator.
    sqlstate = getattr(cause, "sqlstate", None) or ""
    is_of_connection = sqlstate.startswith("08") or str(cause).startswith(_LOST_WORKER)
    return bool(sqlstate) and is_of_connection and citus.is_used()


def _kind_of(error: Error) -> type[DatabaseFailure] | None:
    # psycopg is slow to import, and commands on SQLite do not need it.
    from psycopg_pool import PoolTimeout, TooManyRequests  # noqa: PLC0415

    cause: Any = error.__cause__
    if isinstance(cause, (PoolTimeout, TooManyRequests)):
        return DatabaseBusy
    if sqlstate := getattr(cause, "sqlstate", None):
        # Their SQLSTATEs are those of programming errors and of disk errors.
        if str(cause).startswith(_LOST_WORKER):
            return DatabaseUnavailable
        if sqlstate == "XX000" and _FULL_QUOTA in str(cause):
            return DatabaseFull
        return next((_BY_SQLSTATE[c] for c in (sqlstate, sqlstate[:2]) if c in _BY_SQLSTATE), None)
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return _BY_SQLITE.get(code & 0xFF)
    # The driver could not connect or lost the connection, without a SQLSTATE.
    return DatabaseUnavailable if isinstance(error, OperationalError) else None
