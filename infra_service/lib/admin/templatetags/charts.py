"""Small charts as inline SVG, without scripts. Their values are also available as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import template
from django.utils.html import format_html, format_html_join

if TYPE_CHECKING:
    from collections.abc import Sequence

register = template.Library()

WIDTH: Final = 300
HEIGHT: Final = 60
_GAP: Final = 2
_WHOLE: Final = 20
_SHOWN: Final = 12
# The minimum height of a value above 0, so that its bar is visible.
_LEAST: Final = 2
_THICK: Final = 12
_SHARE: Final = (
    '<rect class="share-{}" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>'
)
_SHARES: Final = (
    '<figure class="chart shares"><svg role="img" aria-labelledby="{id}-title {id}-desc" '
    'viewBox="0 0 {width} {height}" preserveAspectRatio="none"><title id="{id}-title">{title}'
    '</title><desc id="{id}-desc">{description}</desc><rect class="chart-empty" x="0" y="0" '
    'width="{width}" height="{height}"/>{bars}</svg></figure>'
)


@register.filter
def thousands(value: float) -> str:
    """Format a number with thousands separators."""
    return f"{value:,}"


@register.simple_tag
def identifier(value: object) -> str:
    """Show the end of an identifier, which distinguishes it, with the full identifier as title."""
    text = str(value)
    shown = text if len(text) <= _WHOLE else f"…{text[-_SHOWN:]}"
    return format_html('<span class="identifier" title="{}">{}</span>', text, shown)


@register.inclusion_tag("admin_base/bar_chart.html")
def bar_chart(
    chart_id: str, points: Sequence[tuple[str, float]], title: str, unit: str = ""
) -> dict[str, Any]:
    """Draw a bar for each ``(label, value)``. Values must not be negative."""
    step = WIDTH / max(len(points), 1)
    top = max((value for _, value in points), default=0) or 1
    bars = []
    for number, (label, value) in enumerate(points):
        height = max(round(value / top * (HEIGHT - 2), 2), _LEAST) if value else 0
        bars.append(
            {
                "x": round(number * step + _GAP / 2, 2),
                "y": round(HEIGHT - height, 2),
                "width": round(max(step - _GAP, 1), 2),
                "height": height,
                "label": label,
                "text": _text(value, unit),
            }
        )
    return {**_frame(chart_id, points, title, unit), "bars": bars}


@register.inclusion_tag("admin_base/line_chart.html")
def line_chart(
    chart_id: str, points: Sequence[tuple[str, float]], title: str, unit: str = ""
) -> dict[str, Any]:
    """Draw a line through each ``(label, value)``. Values must not be negative."""
    step = WIDTH / max(len(points) - 1, 1)
    top = max((value for _, value in points), default=0) or 1
    places = [
        f"{round(number * step, 2)},{round(HEIGHT - 1 - value / top * (HEIGHT - 3), 2)}"
        for number, (_, value) in enumerate(points)
    ]
    if len(places) == 1:
        places.append(f"{WIDTH},{places[0].partition(',')[2]}")
    return {**_frame(chart_id, points, title, unit), "points": " ".join(places)}


@register.simple_tag
def shares(
    chart_id: str,
    parts: Sequence[tuple[str, str, float]],
    title: str,
    total: float | None = None,
    unit: str = "",
) -> str:
    """Draw a bar of ``(name, label, value)`` parts, each with the class ``share-<name>``.

    The names with a colour are ok, warning, error, lost, idle, used and beyond. If ``total``
    exceeds the sum of the parts, the rest of the bar stays empty. A template would be too slow for
    lists, which contain hundreds of bars.
    """
    whole = max(sum(value for *_, value in parts), total or 0) or 1
    bars, description, x = [], [], 0.0
    for name, label, value in parts:
        width, text = value / whole * WIDTH, f"{label}: {_text(value, unit)}"
        bars.append((name, round(x, 2), round(width, 2), _THICK, text))
        description.append(text)
        x += width
    drawn = format_html_join("", _SHARE, bars)
    frame = {"id": chart_id, "title": title, "description": ", ".join(description)}
    return format_html(_SHARES, **frame, width=WIDTH, height=_THICK, bars=drawn)


def _frame(
    chart_id: str, points: Sequence[tuple[str, float]], title: str, unit: str
) -> dict[str, Any]:
    return {
        "id": chart_id,
        "title": title,
        "description": ", ".join(f"{label}: {_text(value, unit)}" for label, value in points),
        "width": WIDTH,
        "height": HEIGHT,
        "first": points[0][0] if points else "",
        "last": points[-1][0] if len(points) > 1 else "",
    }


def _text(value: float, unit: str) -> str:
    return f"{value:,} {unit}".strip()
