"""Test a mutant in a new process that imports the mutant instead of the module."""

from __future__ import annotations

import importlib.machinery
import mmap
import os
from collections import defaultdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

# Imported only once: the forked processes share these modules.
import django.test  # noqa: F401
import kubernetes  # noqa: F401
import playwright.sync_api  # noqa: F401
import pytest
import rest_framework.fields  # noqa: F401

from tools.mutants.mutant import Mutant
from tools.mutants.rooms import ROOMS
from tools.mutants.verdicts import PYTEST, Verdict, in_a_fork, skip_shrinking

#: The time limit of all tests of a module, which is several times their usual duration.
_SECONDS = 400
#: The id of the failed test, which a fork writes.
_failed: Final = mmap.mmap(-1, 4096)
#: The tests that killed mutants, per module, the latest first.
_killers: Final[dict[str, list[str]]] = defaultdict(list)


class _First:
    """A pytest plugin that runs the given tests first, and reports the failed test."""

    def __init__(self, tests: list[str]) -> None:
        self._places = {name: place for place, name in reversed(list(enumerate(tests)))}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            name = report.nodeid.encode()[: len(_failed) - 1] + b"\0"
            _failed[: len(name)] = name

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        skip_shrinking()
        items.sort(key=lambda item: self._places.get(item.nodeid, len(self._places)))


def judge_fresh(mutant: Mutant, tests: list[str]) -> Verdict:
    """Run all tests of the mutant's module, starting with the given tests."""
    path = str(Path(mutant.room).resolve())
    get_code = importlib.machinery.SourceFileLoader.get_code

    def get_mutated_code(loader: Any, name: str) -> Any:
        if loader.path == path:
            return compile(mutant.source, path, "exec")
        return get_code(loader, name)

    def attempt() -> Verdict:
        # A separate database, because the other process uses the configured database.
        address = urlsplit(os.environ.get("DATABASE_URL", ""))
        if address.scheme.startswith("postgres"):
            os.environ["DATABASE_URL"] = address._replace(path="/fresh").geturl()
        importlib.machinery.SourceFileLoader.get_code = get_mutated_code  # type: ignore[method-assign, assignment]
        code = pytest.main(
            [*PYTEST, "-x", *ROOMS[mutant.room]], plugins=[_First([*killers, *tests])]
        )
        return Verdict.KILLED if code else Verdict.ALIVE

    killers = _killers[mutant.room]
    _failed[:1] = b"\0"
    verdict = in_a_fork(attempt, _SECONDS)
    if name := _failed[:].partition(b"\0")[0].decode():
        killers.insert(0, name)
    return verdict
