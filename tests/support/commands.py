"""Management commands, and other work, on a live server's database, within the test process."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from infra_service.operations.object_storage import s3_storage
from tests.support.server import LiveServer

T = TypeVar("T")


def run(server: LiveServer, commands: Sequence[Sequence[str]]) -> list[str]:
    """Run commands on the server's database, with its keys and store; return the output of each."""

    def run_all() -> list[str]:
        printed = []
        for name, *arguments in commands:
            out = io.StringIO()
            call_command(name, *arguments, stdout=out)
            printed.append(out.getvalue())
        return printed

    return on_database_of(server, run_all)


def on_database_of(server: LiveServer, work: Callable[[], T]) -> T:
    """Return the result of the work, with all its queries on the server's database.

    Django refuses queries beside the event loop of a browser, so then a separate thread does the
    work. Otherwise it stays in this thread: only the main thread may handle signals.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _connected(server, work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_connected, server, work).result()


def _connected(server: LiveServer, work: Callable[[], T]) -> T:
    own = connections["default"]
    # Pools are found by a connection's alias, and this pool has connections to another database.
    options = {k: v for k, v in own.settings_dict["OPTIONS"].items() if k != "pool"}
    there = {**own.settings_dict, **server.database_settings(), "OPTIONS": options}
    connections["default"] = type(own)(there, "default")
    try:
        with override_settings(**_settings(server)):
            return work()
    finally:
        connections["default"].close()
        connections["default"] = own


def _settings(server: LiveServer) -> dict[str, Any]:
    """Return the server's own values of all settings that commands use."""
    environment = server.environment
    own: dict[str, Any] = {}
    # The quick start keeps its keys in a file; its commands need no keys.
    if keys := environment.get("STATE_ENCRYPTION_KEYS"):
        own["STATE_ENCRYPTION_KEYS"] = keys.split(",")
    if url := environment.get("STATE_STORAGE_URL"):
        own["STORAGES"] = {**settings.STORAGES, "states": s3_storage(url)}
        own["STATE_STORAGE_WRITES"] = environment.get("STATE_STORAGE_WRITES") != "false"
    return own
