"""Test mutants in forks of a process that has imported the code and collected the tests.

The database of the process is also migrated.
"""

from __future__ import annotations

import functools
import gc
import mmap
import os
import pickle
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FunctionType
from typing import IO, Any, Final

import pytest
from coverage import Coverage
from django.db import connections

from tests.support.issuer import IssuerServer
from tools.mutants.mutant import Mutant
from tools.mutants.rooms import ROOMS
from tools.mutants.swapping import RanAtImportError, change_of, functions_of, run_again
from tools.mutants.verdicts import PYTEST, Verdict, in_a_fork, skip_shrinking

#: The seconds that a test may take in addition to ten times that of the slowest test of its file.
_SECONDS: Final = 20
#: The duration of a file's slowest test above which the tests of other files run first.
_CHEAP_SECONDS: Final = 2
_Cache: Final = type(functools.cache(lambda: None))


#: A mutant's verdict and, for ``ELSEWHERE``, the tests to run, the most likely to fail first.
_Judged = tuple[Verdict, list[str]]


def judge_warm(mutants: list[Mutant], listed: set[tuple[str, str, str]]) -> Iterator[_Judged]:
    """Yield the verdict of each mutant, while a child process tests the next mutants.

    ``listed`` contains the keys of the mutants that are known to survive.
    """
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with os.fdopen(sending, "wb") as answer:
                plugin = _Warm(mutants, listed, answer)
                plugin.coverage.start()
                files = sorted({file for mutant in mutants for file in ROOMS[mutant.room]})
                code = int(pytest.main([*PYTEST, *files], plugins=[plugin]))
        except Exception:  # noqa: BLE001 - the child must not continue with the parent's code
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(sending)
    with os.fdopen(receiving, "rb") as answer:
        for _ in mutants:
            try:
                yield pickle.load(answer)
            except EOFError:
                break
    if os.waitpid(pid, 0)[1]:
        sys.exit("The tests fail without any mutant.")


class _Warm:
    """A pytest plugin that runs all tests once for coverage, and then each mutant in a fork."""

    def __init__(
        self, mutants: list[Mutant], listed: set[tuple[str, str, str]], answer: IO[bytes]
    ) -> None:
        self._mutants, self._listed, self._answer = mutants, listed, answer
        self._paths = {mutant.room: str(Path(mutant.room).resolve()) for mutant in mutants}
        # Started before all imports: the code that runs during imports does not belong to a test.
        self.coverage = Coverage(
            data_file=None, config_file=False, include=list(self._paths.values())
        )
        self._failed: list[str] = []
        self._ends: list[Callable[[], None]] = []
        self._took: dict[str, float] = {}
        # The slowest test of each file, usually because it creates the rows of the file's tests.
        self._slowest: dict[str, float] = defaultdict(float)
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)
        self._sound: set[str] = set()  # tests that pass alone, with empty caches
        self._caches: list[Any] = []
        self._place = mmap.mmap(-1, 4)  # index of the test that kills the mutant, set by a fork

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: Any
    ) -> Generator[None, object, object]:
        """Record the fixtures that run a server in a thread.

        A fork does not inherit threads, so each fork must start the server again.
        """
        made = yield
        if isinstance(made, IssuerServer):
            self._ends.append(functools.partial(fixturedef.finish, request))
        return made

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        skip_shrinking()
        covered = self._covered(session)
        if self._failed:
            return True
        for end in self._ends:
            end()
        # Do not print the results of the tests of mutants.
        session.config.pluginmanager.unregister(name="terminalreporter")
        functions = {path: functions_of(path) for path in self._paths.values()}
        packages = {room.partition("/")[0] for room in ROOMS}
        self._caches = [
            thing
            for thing in gc.get_objects()
            # isinstance() would dereference a weak proxy, and its object may no longer exist.
            if type(thing) is _Cache and str(thing.__module__).partition(".")[0] in packages
        ]
        gc.collect()
        gc.freeze()  # forks share unmodified memory
        for mutant in self._mutants:
            path = self._paths[mutant.room]
            verdict, tests = self._judge(session, mutant, covered[path], functions[path])
            judged: _Judged = verdict, tests if verdict is Verdict.ELSEWHERE else []
            pickle.dump(judged, self._answer)
            self._answer.flush()
        return True

    def _covered(self, session: pytest.Session) -> dict[str, dict[int, list[str]]]:
        """Run all tests and return the tests that cover each line, per path."""
        for item in session.items:
            self.coverage.switch_context(item.nodeid)
            start = time.perf_counter()
            _run(item, session)
            took = self._took[item.nodeid] = time.perf_counter() - start
            self._slowest[_file_of(item.nodeid)] = max(self._slowest[_file_of(item.nodeid)], took)
        self.coverage.stop()
        data = self.coverage.get_data()
        return {path: data.contexts_by_lineno(path) for path in self._paths.values()}

    def _judge(
        self,
        session: pytest.Session,
        mutant: Mutant,
        covered: dict[int, list[str]],
        functions: list[FunctionType],
    ) -> _Judged:
        try:
            change = change_of(self._paths[mutant.room], mutant.original, mutant.source)
        except RanAtImportError:
            return Verdict.ELSEWHERE, self._ordered(mutant, set(self._took))
        comers = {name for line in mutant.lines for name in covered.get(line, ())}
        # A value that is computed at import can affect any test, not only the tests that cover
        # the line.
        is_made_once = bool(change.statements) or "" in comers
        tests = self._ordered(mutant, set(self._took) if is_made_once else comers)
        if is_made_once and mutant.key in self._listed:
            return Verdict.ELSEWHERE, tests  # judge_fresh() would test a survivor anyway

        def attempt() -> Verdict:
            try:
                change.make(functions)
            except RanAtImportError:
                return Verdict.ELSEWHERE
            return self._outcome(session, tests)

        def control() -> Verdict:
            run_again(change.path, change.originals)
            return self._outcome(session, killer)

        verdict = in_a_fork(attempt, _SECONDS)
        if verdict is Verdict.KILLED and tests:
            killer = [tests[int.from_bytes(self._place[:])]]
            self._kills[mutant.room][killer[0]] += 1
            if change.statements or killer[0] not in self._sound:
                if in_a_fork(control, _SECONDS) is Verdict.KILLED:
                    return Verdict.ELSEWHERE, tests
                self._sound.add(killer[0])
        elif verdict is Verdict.ALIVE and (is_made_once or len(tests) < 2):
            verdict = Verdict.ELSEWHERE
        return verdict, tests

    def _ordered(self, mutant: Mutant, names: set[str]) -> list[str]:
        """Return the tests of the mutant's module, the most likely to fail first."""
        kills = self._kills[mutant.room]
        of_room = [name for name in names if name.startswith(ROOMS[mutant.room])]

        def order(name: str) -> tuple[bool, int, float]:
            is_cheap = self._slowest[_file_of(name)] <= _CHEAP_SECONDS
            return not is_cheap, -kills[name], self._took[name]

        return sorted(of_room, key=order)

    def _outcome(self, session: pytest.Session, tests: list[str]) -> Verdict:
        """Run tests until the first failure, and start with empty caches."""
        left = _leave_connections()  # noqa: F841 - closing them would end the parent's connections
        for cache in self._caches:
            cache.cache_clear()
        items = {item.nodeid: item for item in session.items}
        for place, name in enumerate(tests):
            self._place[:] = place.to_bytes(4)
            # The time limit per test detects an endless loop early.
            signal.setitimer(signal.ITIMER_REAL, _SECONDS + 10 * self._slowest[_file_of(name)])
            _run(items[name], session)
            if self._failed:
                return Verdict.KILLED
        return Verdict.ALIVE


def _file_of(name: str) -> str:
    return name.partition("::")[0]


def _leave_connections() -> list[Any]:
    """Disconnect this fork from PostgreSQL and return the parent's connections.

    The fork then opens its own connections, from its own pools, because it has no threads of the
    parent's pools. A SQLite database is in memory, so the fork has a copy.
    """
    left: list[Any] = []
    wrapper: Any
    for wrapper in connections.all(initialized_only=True):
        if wrapper.vendor == "postgresql":
            left += [wrapper.connection, wrapper._connection_pools]
            wrapper.connection, wrapper._connection_pools = None, {}
    return left


def _run(item: pytest.Item, session: pytest.Session) -> None:
    """Run a test, and keep the fixtures of the session for the next test."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=session)
