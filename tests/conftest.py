"""The fixtures that every test shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def live() -> Iterator[object]:
    """A live server with a database of its own, shared by the tests of this process."""
    from tests.server import live_server  # noqa: PLC0415 - only for tests that need it

    with live_server() as server:
        yield server
