"""Draw line plots in panels as SVG, without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

COLOURS = ("#1f6feb", "#c2410c", "#15803d", "#7c3aed")
WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 230, 170, 50, 40, 70


class Line(NamedTuple):
    """The values of a line, in the order of the x axis."""

    name: str
    values: Sequence[float]
    colour: int = 0
    is_dashed: bool = False


class Panel(NamedTuple):
    """Lines over a common y axis, which begins at zero."""

    title: str
    lines: Sequence[Line]


def svg(panels: Sequence[Panel], places: Sequence[int], below: str) -> str:
    """Return the panels side by side.

    ``places`` contains the x values, and ``below`` is the label of the x axis.
    """
    width = LEFT + len(panels) * (WIDTH + BETWEEN)
    height = TOP + HEIGHT + 50 + 16 * max(len(panel.lines) for panel in panels)
    drawn = [
        _panel(panel, places, below, LEFT + number * (WIDTH + BETWEEN))
        for number, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11" fill="#222">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _panel(panel: Panel, places: Sequence[int], below: str, left: int) -> str:
    top = _round_up(max(value for line in panel.lines for value in line.values))
    bottom = TOP + HEIGHT
    parts = [f'<text x="{left}" y="{TOP - 14}" font-size="13">{panel.title}</text>']
    for step in range(5):
        y, value = bottom - HEIGHT * step / 4, top * step / 4
        parts.append(f'<path d="M{left} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    xs = [left + WIDTH * number / max(len(places) - 1, 1) for number in range(len(places))]
    for x, place in zip(xs, places, strict=True):
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{place}</text>')
    parts.append(
        f'<text x="{left + WIDTH / 2}" y="{bottom + 32}" text-anchor="middle">{below}</text>'
    )
    for number, line in enumerate(panel.lines):
        points = " ".join(
            f"{x:.1f},{bottom - HEIGHT * value / top:.1f}"
            for x, value in zip(xs, line.values, strict=True)
        )
        style = f'stroke="{COLOURS[line.colour]}"' + (
            ' stroke-dasharray="5 3"' if line.is_dashed else ""
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke-width="2" {style}/>')
        y = bottom + 50 + 16 * number
        parts.append(f'<path d="M{left} {y}h24" stroke-width="2" {style}/>')
        parts.append(f'<text x="{left + 30}" y="{y + 4}">{line.name}</text>')
    return "\n".join(parts)


def _round_up(value: float) -> float:
    """Return the next round number for an axis with four parts."""
    unit = 10 ** math.floor(math.log10(value))
    return next(unit * times for times in (1, 2, 4, 6, 8, 10) if unit * times >= value)
