"""The workers' parent process holds nothing that a fork must not share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server import LiveServer

pytestmark = pytest.mark.both


def test_preloaded_process_has_no_threads_or_connections(live: LiveServer) -> None:
    first = Path(f"/proc/{live.pid}")
    assert len([*(first / "task").iterdir()]) == 1
    opened = [str(descriptor.readlink()) for descriptor in (first / "fd").iterdir()]
    assert opened
    assert [name for name in opened if name.startswith("socket:")] == []
