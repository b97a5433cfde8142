"""``--quick``: run only the tests that stay in one process, for ``make check``.

The selection is automatic. A test that starts a process (a live server, a command, a browser,
terraform) or opens a network socket (to a cluster's API server) is skipped at that moment,
whichever fixture or function does it.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest
import urllib3  # noqa: F401 - it opens a socket when it is imported, which no test is to pay for

from tests.support.parts import is_repetition

_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"})
_NETWORK = frozenset({socket.AF_INET, socket.AF_INET6})


class Quick:
    """The plugin, registered only with ``--quick``."""

    def __init__(self) -> None:
        self._in_test = False
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._in_test:
            return
        # Raised before a socket exists, so that it need not be closed.
        if event in _STARTS or (event == "socket.__new__" and arguments[1] in _NETWORK):
            pytest.skip("starts a process or opens a socket")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Watch only what a test and its fixtures do."""
        self._in_test = True
        try:
            return (yield)
        finally:
            self._in_test = False

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out slow repetitions of a rule, and of the same statements with other values.

        Also leave out browsers: Playwright's event loop would survive the skip.
        """
        left = {
            item for item in items if _is_slow(item) or is_repetition(item) or _needs_browser(item)
        }
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("long", "slow"))


def _needs_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())
