"""The process that the workers are forks of has nothing that a fork could not have for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server import LiveServer

pytestmark = pytest.mark.both


def test_nothing_that_is_loaded_has_a_thread_or_a_connection(live: LiveServer) -> None:
    first = Path(f"/proc/{live.pid}")
    assert len([*(first / "task").iterdir()]) == 1
    opened = [str(descriptor.readlink()) for descriptor in (first / "fd").iterdir()]
    assert opened
    assert [name for name in opened if name.startswith("socket:")] == []
