"""Format the results as Markdown tables and as a plot."""

from __future__ import annotations

from tools.bench.day.steps import Step
from tools.bench.plot import Line, Panel, svg

_COLUMNS = (
    "teams", "states", "clusters", "workloads", "requests per second",
    "p99 of the slowest kind, ms", "service CPU", "PostgreSQL CPU", "client CPU",
    "WAL per second, MB", "within limits",
)  # fmt: skip
HEADER = (f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS))


def row(step: Step) -> str:
    used = step.used
    waited = [kind for kind in step.milliseconds if kind != "snapshot"]
    slowest = max(waited, key=lambda kind: step.percentile(kind, 0.99), default="")
    cpu = (used.service_cpu, used.postgresql_cpu, used.clients_cpu)
    cells = (
        f"{step.teams:,}", f"{step.states:,}", f"{step.clusters:,}", f"{step.workloads:,}",
        f"{step.requests_per_second:.0f}",
        slowest and f"{slowest} {step.percentile(slowest, 0.99):.0f}",
        *(f"{seconds / used.moment:.2f}" for seconds in cpu), f"{used.wal / used.moment / 1e6:.2f}",
        "no" if step.problems else "yes",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def kinds(step: Step) -> list[str]:
    lines = ["| request | per minute | p50, ms | p99, ms | slowest, ms |", "|---|---|---|---|---|"]
    for kind, found in sorted(step.milliseconds.items()):
        numbers = (step.percentile(kind, share) for share in (0.5, 0.99, 1))
        rate = len(found) * 60 / step.used.moment
        lines.append(f"| {kind} | {rate:,.0f} | {' | '.join(f'{n:.0f}' for n in numbers)} |")
    return lines


_DRAWN = ("push", "workloads", "page", "report")


def draw(steps: list[Step]) -> str:
    """Return a plot of durations and CPU by the number of teams."""
    shown = [kind for kind in _DRAWN if all(kind in step.milliseconds for step in steps)]
    slowest = [
        Line(f"{kind}, p99", [step.percentile(kind, 0.99) for step in steps], number)
        for number, kind in enumerate(shown)
    ]
    cpu = [
        Line("service", [step.used.service_cpu / step.used.moment for step in steps], 0),
        Line("PostgreSQL", [step.used.postgresql_cpu / step.used.moment for step in steps], 1),
        Line("clients", [step.used.clients_cpu / step.used.moment for step in steps], 2),
    ]
    panels = [Panel("milliseconds", slowest), Panel("CPU cores", cpu)]
    return svg(panels, [step.teams for step in steps], "teams")
