"""The results of a benchmark: figures of the service and of a peer from the same run."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

#: The file to which each figure is appended as a JSON line, for ``tools.bench``.
COLLECTED_IN = "BENCH_FIGURES"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A comparison. ``ours`` and ``peer`` are in ``unit``, and lower values are better.

    ``at_most`` is the maximum of ours / peer, and ``at_least`` is the minimum of peer / ours.
    """

    work: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.at_most is not None else self.peer / self.ours

    @property
    def target(self) -> str:
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"

    @property
    def is_met(self) -> bool:
        if self.at_most is not None:
            return self.ratio <= self.at_most
        return self.at_least is not None and self.ratio >= self.at_least

    def row(self) -> tuple[str, ...]:
        """Return the cells of a table: work, ours, peer, ratio, target, and whether it is met."""
        ours, peer = (
            f"{float(f'{value:.3g}'):,.10g} {self.unit}" for value in (self.ours, self.peer)
        )
        met = "yes" if self.is_met else "**no**"
        return self.work, ours, f"{peer} {self.peer_name}", f"{self.ratio:.2f}", self.target, met


@dataclass(frozen=True)
class Remark:
    """A measurement without a peer, as a sentence."""

    text: str


def remark(text: str) -> None:
    """Print a sentence, and record it for ``tools.bench``."""
    print(text)
    _collect(Remark(text))


def publish(*figures: Figure) -> None:
    """Print the figures, and record them for ``tools.bench``."""
    for figure in figures:
        work, ours, peer, ratio, target, met = figure.row()
        print(f"{work:52} {ours:>12} {peer:46} ratio {ratio:>7}  target {target:6} {met}")
    _collect(*figures)


def _collect(*found: Figure | Remark) -> None:
    if path := os.environ.get(COLLECTED_IN):
        with Path(path).open("a") as file:
            file.writelines(json.dumps(dataclasses.asdict(f)) + "\n" for f in found)
