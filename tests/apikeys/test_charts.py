"""Charts as inline SVG, with their figures as text."""

import re
from typing import Any

import pytest
from django.template import Context, Template

from infra_service.lib.admin.templatetags.charts import (
    HEIGHT,
    WIDTH,
    bar_chart,
    identifier,
    line_chart,
    shares,
)


def drawn(tag: str, **context: Any) -> str:
    return Template("{% load charts %}{% " + tag + " %}").render(Context(context))


def test_bars_are_drawn_to_scale() -> None:
    page = drawn('bar_chart "x" points "A title" "MB"', points=[("mon", 0), ("tue", 5), ("w", 10)])

    assert 'role="img" aria-labelledby="x-title x-desc"' in page
    assert '<title id="x-title">A title</title>' in page
    assert '<desc id="x-desc">mon: 0 MB, tue: 5 MB, w: 10 MB</desc>' in page
    heights = [float(h) for h in re.findall(r'<rect[^>]* height="([\d.]+)"', page)]
    assert heights == [0, (HEIGHT - 2) / 2, HEIGHT - 2]
    assert "<span>mon</span><span>w</span>" in page


def test_small_values_are_visible() -> None:
    bars = bar_chart("x", [("a", 1), ("b", 1_000_000)], "t")["bars"]

    assert bars[0]["height"] == 2


@pytest.mark.parametrize("draw", [bar_chart, line_chart])
@pytest.mark.parametrize("points", [[], [("a", 0)], [("a", 0), ("b", 0)]])
def test_chart_without_data_is_drawn(draw: Any, points: Any) -> None:
    drawing = draw("x", points, "t")

    assert drawing["first"] == (points[0][0] if points else "")


def test_line_is_drawn_to_scale() -> None:
    points = line_chart("x", [("a", 0), ("b", 10), ("c", 5)], "t")["points"].split()

    xs = [float(point.split(",")[0]) for point in points]
    ys = [float(point.split(",")[1]) for point in points]
    assert xs == [0, WIDTH / 2, WIDTH]
    assert ys[1] < ys[2] < ys[0] == HEIGHT - 1


def test_line_with_a_single_point_is_visible() -> None:
    assert line_chart("x", [("a", 7)], "t")["points"].split() == ["0.0,2.0", f"{WIDTH},2.0"]


def test_shares_are_drawn() -> None:
    parts = [("ok", "Healthy", 3), ("error", "Error", 1)]

    def widths(drawn: str) -> list[tuple[float, float]]:
        found = re.findall(r'class="share-\w+" x="([0-9.]+)" y="0" width="([0-9.]+)"', drawn)
        return [(float(x), float(width)) for x, width in found]

    assert widths(shares("x", parts, "t")) == [(0, WIDTH * 3 / 4), (WIDTH * 3 / 4, WIDTH / 4)]
    assert widths(shares("x", parts, "t", total=8)) == [
        (0, WIDTH * 3 / 8), (WIDTH * 3 / 8, WIDTH / 8)
    ]  # fmt: skip
    page = drawn('shares "x" parts "t"', parts=parts)
    assert 'class="share-ok"' in page
    assert "<title>Healthy: 3</title>" in page


def test_labels_are_escaped() -> None:
    page = drawn('bar_chart "x" points title', points=[("<i>", 1)], title="<b>")

    assert "<i>" not in page
    assert "<b>" not in page


def test_identifiers_are_shortened_at_their_beginning() -> None:
    assert identifier("short") == '<span class="identifier" title="short">short</span>'
    long = "01a1ff66-6403-7746-bac1-4d926a47708e"
    assert identifier(long) == f'<span class="identifier" title="{long}">…4d926a47708e</span>'
