"""The tutorial and README.md, from ``make run`` to their last line, with the real terraform."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.conftest import A_FEW, needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.quickstart import Quickstart

pytestmark = [pytest.mark.terraform, needs_terraform]


def walk(document: Path, place: Path, quickstart: Quickstart, *, is_used: bool) -> int:
    """Walk a document that begins with ``make run``, of a service that may be in use already."""
    words = {"http://127.0.0.1:8000": quickstart.place.url}

    def make_run() -> str:
        printed = quickstart.start()
        (words["isp_…"],) = re.findall(r"isp_\w{38}", printed)
        (block,) = re.findall(r"^terraform \{$.*?^\}$", printed, re.MULTILINE | re.DOTALL)
        (place / "main.tf").write_text(f'{block}\nresource "terraform_data" "one" {{}}\n')
        if is_used:
            command = [sys.executable, "manage.py", "seed_demo", *A_FEW]
            subprocess.run(command, cwd=ROOT, env=quickstart.environment, check=True)
        return printed

    by_hand = {"make run": make_run}
    return Walk(place, readers(place, quickstart.environment), words, by_hand).through(document)


def test_first_state(place: Path, quickstart: Quickstart) -> None:
    assert walk(ROOT / "docs/tutorial/first-state.md", place, quickstart, is_used=True)


def test_readme(place: Path, quickstart: Quickstart) -> None:
    """Its reader pastes the block that is printed into a configuration, which has a resource."""
    assert walk(ROOT / "README.md", place, quickstart, is_used=False)
