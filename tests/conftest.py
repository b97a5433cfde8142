"""The fixtures that every test shares."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator

import pytest

# Before Django reads its settings: secrets of this run only, and never what var/ holds.
os.environ.setdefault("VAR_DIR", "/nonexistent")
os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
os.environ.setdefault("STATE_ENCRYPTION_KEYS", base64.b64encode(secrets.token_bytes(32)).decode())


@pytest.fixture(scope="session")
def live() -> Iterator[object]:
    """A live server with a database of its own, shared by the tests of this process."""
    from tests.server import live_server  # noqa: PLC0415 - only for tests that need it

    with live_server() as server:
        yield server
