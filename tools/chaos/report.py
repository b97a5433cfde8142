"""Format the outcomes of scenarios as a table."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The outcome of a scenario. ``broken`` contains the broken promises."""

    name: str
    statuses: Counter[int] = field(default_factory=Counter)
    reasons: Counter[tuple[int, str]] = field(default_factory=Counter)
    acknowledged: int = 0
    back_after: float | None = None
    figures: dict[str, object] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        return bool(self.broken or self.statuses[500])

    def lost(self) -> int:
        """Return the number of acknowledged pushes that are missing."""
        return sum("lost" in problem for problem in self.broken)


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = [
        "| fault | requests by status | first acknowledged push after | lost | details |",
        "|---|---|---|---|---|",
    ]
    for one in outcomes:
        statuses = ", ".join(
            f"{status or 'none'}: {n}" for status, n in sorted(one.statuses.items())
        )
        reasons = {f"{status} {reason}": n for (status, reason), n in sorted(one.reasons.items())}
        more = "; ".join(f"{k}: {v}" for k, v in {**one.figures, **reasons}.items())
        back = "" if one.back_after is None else f"{one.back_after} s"
        lost = f"{one.lost()} of {one.acknowledged}" if one.acknowledged else ""
        lines.append(f"| {one.name} | {statuses} | {back} | {lost} | {more} |")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines.append(f"\nLoad of the machine at the end: {load} on {os.cpu_count()} cores.")
    return "\n".join(lines)
