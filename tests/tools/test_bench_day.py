"""Each kind of work of ``tools.bench.day`` succeeds against a real service."""

from __future__ import annotations

import pytest
from django.db import connection

from tools.bench.day import tables
from tools.bench.day.__main__ import service
from tools.bench.day.company import LISTS
from tools.bench.day.steps import send, take

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="measures PostgreSQL"),
]

KINDS = {"exchange", "lock", "page", "pull", "report", "snapshot", "unlock"}


def test_each_kind_of_work() -> None:
    with service() as (company, commands):
        step = take(company, 1, 1, commands)
        company.states[:] = [state for state in company.states if state.size == 10_000]
        send(company, [(0.0, work) for work in company.rates()])

        assert dict(company.wrong) == {}
        (a_list,) = set(company.milliseconds) - KINDS - {"push"}
        assert a_list in LISTS
        assert (step.states, step.clusters, step.workloads) == (11, 4, 5_600)
        assert min(step.memory) > 0
        assert len(tables.row(step).split("|")) == len(tables.HEADER[0].split("|"))
