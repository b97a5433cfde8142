"""The short, repeatable run of the fuzzer in every test run; the long run is ``make fuzz``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import LiveServer, live_server
from tools.fuzz import running

pytestmark = pytest.mark.long

# Reports have hundreds of fields, and random tests of their own (tests/workloads).
REPORTS = ("replace_workloads", "amend_workloads")


@pytest.fixture
def unlimited() -> Iterator[LiveServer]:
    with live_server(**running.UNLIMITED) as server:
        yield server


@pytest.fixture
def sparing(tmp_path: Path) -> Path:
    """A configuration with which each field's values are tried once (tools/fuzz/sparing.py)."""
    usual = running.CONFIG.read_text()
    config = tmp_path / "schemathesis.toml"
    without = [
        f'\n[[operations]]\ninclude-operation-id = "{name}"\nphases.coverage.enabled = false\n'
        for name in REPORTS
    ]
    config.write_text(
        usual.replace('"tools.fuzz.hooks"', '"tools.fuzz.sparing"') + "".join(without)
    )
    return config


def test_every_answer_is_as_described(unlimited: LiveServer, sparing: Path, tmp_path: Path) -> None:
    """The examples of the document, and the bounds of every field and parameter in it."""
    known = running.prepare(unlimited)
    log = tmp_path / "said.txt"
    with log.open("w") as output:
        phases = ("--phases", "examples,coverage")
        code = running.run(known, output, *phases, "--seed", "1", config=sparing)

    assert code == 0, log.read_text()
    assert running.server_errors(unlimited) == []
