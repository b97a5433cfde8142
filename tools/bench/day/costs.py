"""Measure the costs of a request of each kind, from many requests in sequence."""

from __future__ import annotations

from collections.abc import Callable

from tools.bench.day.clients import GZIP, Cluster, State
from tools.bench.day.company import Company
from tools.bench.day.resources import Resources, settle

_TIMES = 100
_HEADER = (
    "| request | CPU of the service, ms | CPU of PostgreSQL, ms | WAL, KB | database, KB |",
    "|---|---|---|---|---|",
)


def costs_of(company: Company, commands: tuple[int, ...]) -> list[str]:
    """Return a Markdown table of the costs, which exclude the work of the clients."""
    settle(company.server)
    states = {state.size: state for state in company.states}
    clusters = {cluster.size: cluster for cluster in company.clusters}
    work: dict[str, Callable[[], None]] = {
        **{
            f"push of {size // 1000:,} KB": lambda state=state: _push(company, state)  # type: ignore[misc]
            for size, state in sorted(states.items())
        },
        **{
            f"delta of a cluster of {size:,} workloads": lambda one=one: _delta(company, one)  # type: ignore[misc]
            for size, one in sorted(clusters.items())
        },
        "list of 50 states": lambda: _get(company, "/api/v1/states?page_size=50"),
        "list of 50 workloads": lambda: _get(company, "/api/v1/workloads?page_size=50"),
    }
    return [*_HEADER, *(_row(company, commands, name, do) for name, do in work.items())]


def _row(company: Company, commands: tuple[int, ...], name: str, do: Callable[[], None]) -> str:
    do()
    before = Resources.used(company.server, commands)
    for _ in range(_TIMES):
        do()
    used = Resources.used(company.server, commands).since(before)
    cpu = (used.service_cpu, used.postgresql_cpu)
    sizes = (used.wal, used.database)
    cells = (
        name,
        *(f"{seconds * 1000 / _TIMES:.1f}" for seconds in cpu),
        *(f"{size / 1000 / _TIMES:.1f}" for size in sizes),
    )
    return f"| {' | '.join(cells)} |"


def _push(company: Company, state: State) -> None:
    company.send("POST", state.path, state.next_document())


def _delta(company: Company, cluster: Cluster) -> None:
    company.send("PATCH", cluster.path, cluster.delta(), **GZIP)


def _get(company: Company, path: str) -> None:
    company.send("GET", path)
