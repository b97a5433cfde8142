"""Management commands, and other work, on a live server's database, in the process of the tests."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.core.management import call_command
from django.db import connections

from tests.server import LiveServer

T = TypeVar("T")


def run(server: LiveServer, commands: Sequence[Sequence[str]]) -> list[str]:
    """Run commands that need nothing of the server but its database; return what each prints."""

    def run_all() -> list[str]:
        printed = []
        for name, *arguments in commands:
            out = io.StringIO()
            call_command(name, *arguments, stdout=out)
            printed.append(out.getvalue())
        return printed

    return on_database_of(server, run_all)


def on_database_of(server: LiveServer, work: Callable[[], T]) -> T:
    """Return what the work returns, all of whose queries go to the server's database.

    A thread has connections of its own, and no event loop of a browser, beside which Django would
    refuse to query.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_connected, server, work).result()


def _connected(server: LiveServer, work: Callable[[], T]) -> T:
    own = connections["default"]
    # Pools are known by a connection's alias, and this one's has connections to another database.
    options = {k: v for k, v in own.settings_dict["OPTIONS"].items() if k != "pool"}
    there = {**own.settings_dict, "NAME": server.database, "OPTIONS": options}
    connections["default"] = type(own)(there, "default")
    try:
        return work()
    finally:
        connections["default"].close()
