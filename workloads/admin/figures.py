"""Render health as a badge, and resource figures as a bar with numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.html import format_html

from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.templatetags.charts import shares
from workloads.signs import sign, word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MIB: Final = 1024 * 1024


def mark(status: str) -> str:
    """Return a badge for a status. An unspecified health has the neutral sign."""
    return badge(sign(status), word(status))


def counts_bar(chart_id: str, counts: Mapping[str, int]) -> str:
    """Return a bar of workload counts by health, with the counts as text."""
    parts = [
        (name, label, counts[label])
        for name, label in (
            ("ok", "healthy"), ("warning", "degraded"), ("error", "error"), ("idle", "unspecified")
        )
    ]  # fmt: skip
    text = ", ".join(f"{count:,} {label}" for _, label, count in parts if count)
    return _bar(chart_id, text or "no workloads", parts, "Workloads by health")


def cpu_bar(chart_id: str, requested: int, used: int | None) -> str:
    """Return a bar that compares CPU usage with requests, both in millicores."""
    return _use_bar(chart_id, "CPU", requested, used, "m")


def memory_bar(chart_id: str, requested: int, used: int | None) -> str:
    """Return a bar that compares memory usage with requests, both in bytes.

    The bar shows GiB, or MiB rounded up.
    """
    return _use_bar(
        chart_id, "Memory", _mebibytes(requested), None if used is None else _mebibytes(used), "MiB"
    )


def cpu_text(millicores: int) -> str:
    """Return a CPU amount as text, in cores or millicores."""
    figure, _, unit = _scaled(millicores, None, "m")
    return _with_unit(figure, unit)


def memory_text(count: int) -> str:
    """Return a number of bytes as text, in GiB or in MiB rounded up."""
    figure, _, unit = _scaled(_mebibytes(count), None, "MiB")
    return _with_unit(figure, unit)


def _with_unit(figure: float, unit: str) -> str:
    """Return a number and its unit, joined by a non-breaking space for narrow columns."""
    return f"{figure:,}\N{NO-BREAK SPACE}{unit}"


def _mebibytes(count: int) -> int:
    return -(-count // _MIB)


def _use_bar(chart_id: str, what: str, requested: float, used: float | None, unit: str) -> str:
    requested, used, unit = _scaled(requested, used, unit)
    if used is None:
        return format_html("{} requested, usage not measured", _with_unit(requested, unit))
    most = f"of {_with_unit(requested, unit)}"
    text = f"{used:,} {most}" if requested else f"{_with_unit(used, unit)}, no request"
    parts = [("used", "within the request", min(used, requested))]
    if used > requested:
        parts.append(("beyond", "beyond the request", round(used - requested, 1)))
    return _bar(
        chart_id,
        text,
        parts,
        f"{what} usage compared with the requested amount",
        total=requested,
        unit=unit,
    )


#: Amounts of at least this many small units are shown in the large unit.
_MANY: Final = 10_000
_LARGE: Final = {"m": ("cores", 1000), "MiB": ("GiB", 1024)}


def _scaled(requested: float, used: float | None, unit: str) -> tuple[float, float | None, str]:
    """Return both figures and their common unit, which is the large unit if a figure is large."""
    if max(requested, used or 0) < _MANY:
        return requested, used, unit
    large, factor = _LARGE[unit]
    return round(requested / factor, 1), None if used is None else round(used / factor, 1), large


def _bar(
    chart_id: str,
    text: str,
    parts: Sequence[tuple[str, str, float]],
    title: str,
    **of: Any,
) -> str:
    chart = shares(chart_id, parts, title, **of)
    return format_html('<div class="figure"><span>{}</span>{}</div>', text, chart)
