"""``make mutants``: make one change in the rules at a time, and check that a test fails.

``make mutants ROOM=states/actions/rules`` selects modules by the beginning of their paths. The exit
status is 0 if tests kill enough mutants and if ``alive.toml`` contains a reason for each survivor.
"""

from __future__ import annotations

import os
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from tools.mutants.fresh import judge_fresh
from tools.mutants.mutant import mutants
from tools.mutants.rooms import ON_POSTGRESQL, rooms_below
from tools.mutants.verdicts import Verdict
from tools.mutants.warm import judge_warm

_ALIVE = Path(__file__).with_name("alive.toml")
_ENOUGH = 0.95


def main(prefix: str = "") -> int:
    """Judge the mutants of the rooms, print the table, and return 0 on success."""
    start = time.monotonic()
    on_postgresql = os.environ.get("DATABASE_URL", "").startswith("postgres")
    found = [
        mutant
        for room in rooms_below(prefix)
        if on_postgresql or not room.startswith(ON_POSTGRESQL)
        for mutant in mutants(room)
    ]
    print(f"{len(found)} mutants", flush=True)
    reasons = _reasons()
    listed = {key for key in reasons if key[0] in {mutant.room for mutant in found}}
    counts: dict[str, Counter[str]] = {mutant.room: Counter() for mutant in found}
    left = Counter(mutant.room for mutant in found)
    for mutant, (verdict, tests) in zip(found, judge_warm(found, listed.copy()), strict=True):
        last = judge_fresh(mutant, tests) if verdict is Verdict.ELSEWHERE else verdict
        counts[mutant.room][last] += 1
        if last is Verdict.ALIVE:
            listed.discard(mutant.key)
            if mutant.key not in reasons:
                counts[mutant.room]["unexplained"] += 1
                print(f"\nALIVE {mutant}", flush=True)
        left[mutant.room] -= 1
        if not left[mutant.room]:
            print(f"\n{_minutes(start)}: {mutant.room}", flush=True)
    for room, was, becomes in sorted(listed):
        print(f"listed but not alive: {room}: {was}  ->  {becomes}")
    _print_table(counts)
    print(_minutes(start))
    total = sum(counts.values(), Counter[str]())
    return int(total["unexplained"] > 0 or total[Verdict.KILLED] < _ENOUGH * len(found))


def _minutes(start: float) -> str:
    return f"{(time.monotonic() - start) / 60:.0f} minutes"


def _reasons() -> dict[tuple[str, str, str], str]:
    return {
        (room, change["was"], change["becomes"]): entry["why"]
        for entry in tomllib.loads(_ALIVE.read_text()).get("alive", ())
        for room in [entry["room"]]
        for change in entry["changes"]
    }


def _print_table(counts: dict[str, Counter[str]]) -> None:
    print("| module | mutants | killed | alive | unexplained | share killed |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows = {**counts, "all": sum(counts.values(), Counter[str]())}
    for room, count in rows.items():
        killed, alive = count[Verdict.KILLED], count[Verdict.ALIVE]
        share = killed / max(killed + alive, 1)
        cells = (room, killed + alive, killed, alive, count["unexplained"], f"{share:.1%}")
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
