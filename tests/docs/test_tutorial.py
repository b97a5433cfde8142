"""The tutorial and README.md, from ``make run`` to their last line, with the real terraform."""

import re
from pathlib import Path

import pytest

from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.quickstart import Quickstart

pytestmark = [pytest.mark.terraform, needs_terraform]


def walk_from_nothing(document: Path, place: Path, quickstart: Quickstart) -> int:
    """Walk a document that begins with ``make run``."""
    words = {"http://127.0.0.1:8000": quickstart.place.url}

    def make_run() -> str:
        printed = quickstart.start()
        (words["isp_…"],) = re.findall(r"isp_\w{38}", printed)
        (block,) = re.findall(r"^terraform \{$.*?^\}$", printed, re.MULTILINE | re.DOTALL)
        (place / "main.tf").write_text(f'{block}\nresource "terraform_data" "one" {{}}\n')
        return printed

    walk = Walk(place, readers(place, quickstart.environment), words, {"make run": make_run})
    return walk.through(document)


def test_first_state(place: Path, quickstart: Quickstart) -> None:
    assert walk_from_nothing(ROOT / "docs/tutorial/first-state.md", place, quickstart)


def test_readme(place: Path, quickstart: Quickstart) -> None:
    """Its reader pastes the block that is printed into a configuration, which has a resource."""
    assert walk_from_nothing(ROOT / "README.md", place, quickstart)
