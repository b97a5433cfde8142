"""The short run of every test run, the same each time; the long one is ``make fuzz``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.fuzz import running
from tests.server import LiveServer, live_server

pytestmark = [pytest.mark.both, pytest.mark.long]

# Reports have hundreds of fields, and random tests of their own (tests/workloads).
REPORTS = ("replace_workloads", "amend_workloads")


@pytest.fixture
def unlimited() -> Iterator[LiveServer]:
    with live_server(**running.UNLIMITED) as server:
        yield server


def test_every_answer_is_as_described(unlimited: LiveServer, tmp_path: Path) -> None:
    """The examples of the document, and the bounds of every field and parameter in it.

    SQLite takes whatever PostgreSQL takes of a body, and refuses more only of what it compares.
    """
    known = running.prepare(unlimited)
    said = tmp_path / "said.txt"
    with said.open("w") as output:
        examples = running.run(known, output, "--phases", "examples", "--seed", "1")
        which = [f"--exclude-operation-id={name}" for name in REPORTS]
        if connection.vendor == "sqlite":
            which = ["--include-method=GET"]
        bounds = running.run(known, output, "--phases", "coverage", "--seed", "1", *which)

    assert (examples, bounds) == (0, 0), said.read_text()
    assert running.server_errors(unlimited) == []
