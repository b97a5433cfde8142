"""The table of the usage of pods finds the same as a dictionary, in little memory."""

from __future__ import annotations

import random
import tracemalloc

from workloads.collector.usage_table import UsageTable
from workloads.kubernetes.facts import PodKey

NANOS = 10**9


def keys(total: int) -> list[PodKey]:
    return [PodKey(f"team-{n % 7}", f"w-{n // 10:05d}-{n}") for n in range(total)]


def test_it_is_a_dictionary() -> None:
    """Also when a pod is measured a second time."""
    rng = random.Random(1)
    pods, known = keys(2_500), dict[PodKey, tuple[int, ...]]()
    table = UsageTable()
    for _ in range(5_000):
        key = rng.choice(pods)
        known[key] = (rng.randrange(2**64), rng.randrange(2**64) * NANOS)
        table.put(key, known[key])

    assert len(known) < 2_500
    assert all(table.get(key) == known.get(key) for key in pods)


def test_values_are_rounded_up_and_limited() -> None:
    table = UsageTable()
    key = PodKey("a", "b")

    table.put(key, (2**80, 3 * NANOS + 1))

    assert table.get(key) == (2**64 - 1, 4 * NANOS)
    assert table.get(PodKey("b", "a")) is None


def test_a_pod_takes_few_bytes() -> None:
    made = keys(5_000)
    tracemalloc.start()
    try:
        table = UsageTable()
        empty = tracemalloc.get_traced_memory()[0]
        for n, key in enumerate(made):
            table.put(key, (n * 12_345_678, n * 4096 * NANOS))
        taken = tracemalloc.get_traced_memory()[0] - empty
    finally:
        tracemalloc.stop()

    assert taken / len(made) < 40
