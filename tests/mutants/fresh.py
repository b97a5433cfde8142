"""A mutant in a process that imports it as the module itself."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path
from typing import Any

# Loaded once, for all the processes that are forked from this one.
import django.test  # noqa: F401
import kubernetes  # noqa: F401
import playwright.sync_api  # noqa: F401
import pytest
import rest_framework.fields  # noqa: F401

from tests.mutants.mutant import Mutant
from tests.mutants.rooms import ROOMS
from tests.mutants.verdicts import PYTEST, Verdict, in_a_fork, look_for_no_shortest_example

_SECONDS = 180


class _First:
    """A pytest plugin: these tests before the others."""

    def __init__(self, tests: list[str]) -> None:
        self._places = {name: place for place, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        look_for_no_shortest_example()
        items.sort(key=lambda item: self._places.get(item.nodeid, len(self._places)))


def judge_fresh(mutant: Mutant, tests: list[str]) -> Verdict:
    """Run all the tests of the mutant's room, these first."""
    path = str(Path(mutant.room).resolve())
    get_code = importlib.machinery.SourceFileLoader.get_code

    def get_mutated_code(loader: Any, name: str) -> Any:
        if loader.path == path:
            return compile(mutant.source, path, "exec")
        return get_code(loader, name)

    def attempt() -> Verdict:
        importlib.machinery.SourceFileLoader.get_code = get_mutated_code  # type: ignore[method-assign]
        code = pytest.main([*PYTEST, "-x", *ROOMS[mutant.room]], plugins=[_First(tests)])
        return Verdict.KILLED if code else Verdict.ALIVE

    return in_a_fork(attempt, _SECONDS)
