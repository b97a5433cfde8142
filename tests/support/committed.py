"""A separate database per test, in which transactions are committed.

Django's own method empties the tables afterwards, which the audit log refuses.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar, cast

import pytest
from django.db import connection

from tests.e2e.together import in_threads
from tests.support.installation import Installation

T = TypeVar("T")


@pytest.fixture
def db(
    django_db_setup: None, django_db_blocker: Any, committed_template: Installation
) -> Iterator[None]:
    """Replace pytest-django's ``db`` by a separate database; a module imports it for its tests.

    Fixtures that request ``db`` then get this fixture.
    """
    on_postgresql = connection.vendor == "postgresql"
    copy = _copy_of_postgresql(committed_template) if on_postgresql else _copy_of_sqlite()
    with django_db_blocker.unblock(), copy:
        yield


def twice_at_once(job: Callable[[], T]) -> list[T]:
    """Run a job in two threads that start together, each with its own connection."""
    return at_once([job, job])


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run each job in its own thread with its own connection; all start together."""
    all_are_there = threading.Barrier(len(jobs))

    def work(job: Callable[[], T]) -> T:
        try:
            all_are_there.wait(30)
            return job()
        finally:
            connection.close()

    return in_threads([partial(work, job) for job in jobs])


def backend_pid() -> int:
    """Return the process id of PostgreSQL's backend, which identifies this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@contextlib.contextmanager
def _copy_of_postgresql(template: Installation) -> Iterator[None]:
    settings, wrapper = connection.settings_dict, cast("Any", connection)
    there = template.database_settings()
    own = {name: settings[name] for name in there}
    copy = f"{own['NAME']}_committed"
    wrapper.close()
    wrapper.close_pool()
    settings.update(there | {"NAME": copy})
    try:
        with wrapper._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{there["NAME"]}"')
        yield
    finally:
        wrapper.close()
        wrapper.close_pool()
        with wrapper._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{copy}" WITH (FORCE)')
        settings.update(own)


@contextlib.contextmanager
def _copy_of_sqlite() -> Iterator[None]:
    """Use a file, as in production: threads that share memory would not wait for each other."""
    connection.ensure_connection()
    original = connection.connection
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/db.sqlite3"
        with closing(sqlite3.connect(path)) as copy:
            original.backup(copy)
        name, connection.settings_dict["NAME"] = connection.settings_dict["NAME"], path
        connection.connect()
        try:
            yield
        finally:
            if connection.connection is not None:  # a command may have closed it
                connection.connection.close()
            connection.settings_dict["NAME"] = name
            connection.connection = original
