"""Time and memory to process a document are bounded by its size."""

from __future__ import annotations

import contextlib
import functools
import gc
import time
import tracemalloc
from collections.abc import Callable

import pytest

from states.document import contents, restamp, sealing
from states.errors import StateFormatUnsupported, StateTooComplex
from states.resources.extraction import NamesTooLongError, find_contents
from states.resources.leaks import find_leaks
from tests.states.hostile import DOCUMENTS, changed

pytestmark = pytest.mark.long

MIB = 1024 * 1024


def _resources(gzipped: bytes, _other: bytes) -> None:
    contents.resources(gzipped, start=0, size=100, hide=True)


def _outputs(gzipped: bytes, _other: bytes) -> None:
    contents.outputs(gzipped, start=0, size=100, hide=True)


def _diff(gzipped: bytes, other: bytes) -> None:
    contents.diff(gzipped, other, start=0, size=100, hide=True)


def _index(gzipped: bytes, _other: bytes) -> None:
    loaded = contents.LoadedDocument(gzipped)
    find_leaks(loaded)
    with contextlib.suppress(NamesTooLongError):
        find_contents(loaded)


def _restore(gzipped: bytes, _other: bytes) -> None:
    restamp.replace_serial_and_lineage(sealing.decompress(gzipped), serial=7, lineage="x")


OPERATIONS = [_resources, _outputs, _diff, _restore, _index]


def attempt(operation: Callable[[bytes, bytes], None], pair: tuple[bytes, bytes]) -> None:
    """Do it; a refusal is an answer too."""
    with contextlib.suppress(StateTooComplex, StateFormatUnsupported):
        operation(*pair)


@functools.cache
def packed(name: str, size: int) -> tuple[bytes, bytes]:
    document = DOCUMENTS[name](size)
    return sealing.compress(document), sealing.compress(changed(document))


@pytest.mark.parametrize("operation", [_resources, _diff])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_memory_is_limited(name: str, operation: Callable[[bytes, bytes], None]) -> None:
    """At most 8 times the size, plus the fixed cost of a request."""
    pair = packed(name, 3 * MIB // 8)
    sizes = [sealing.size_of(gzipped) for gzipped in pair]
    size = sum(sizes) if operation is _diff else sizes[0]
    tracemalloc.start()
    try:
        attempt(operation, pair)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * size + 6 * MIB, f"{peak / size:.1f} times the size"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_time_is_limited(name: str, operation: Callable[[bytes, bytes], None]) -> None:
    """Four times the size takes four times the time and some; a square would make it 16."""

    def taken(size: int) -> float:
        pair = packed(name, size)
        gc.disable()  # it walks through all that other tests have left
        try:
            started = time.thread_time()
            attempt(operation, pair)
            return time.thread_time() - started
        finally:
            gc.enable()

    short, long = taken(MIB // 16), taken(MIB // 4)
    assert long <= 10 * short + 0.2, f"{short:.3f} s, then {long:.3f} s"
