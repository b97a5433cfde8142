"""README.md and the tutorial, from ``make run`` to their last line, with the real terraform."""

import re
from pathlib import Path

import pytest

from tests.docs.conftest import A_FEW, needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.support.quickstart import Quickstart
from tests.support.server import LiveServer

pytestmark = [pytest.mark.terraform, needs_terraform]


def test_readme_and_tutorial_work_in_order(place: Path, quickstart: Quickstart) -> None:
    """The README first, then the tutorial with the service in use; it starts once for both."""
    printed = quickstart.start()
    (token,) = re.findall(r"isp_\w{38}", printed)
    (block,) = re.findall(r"^terraform \{$.*?^\}$", printed, re.MULTILINE | re.DOTALL)
    (resource,) = re.findall("`(resource .*)`", (ROOT / "README.md").read_text())
    (place / "main.tf").write_text(f"{block}\n{resource}\n")
    words = {"http://127.0.0.1:8000": quickstart.place.url, "isp_…": token}
    by_hand = {"make run": lambda: printed}
    walk = Walk(place, readers(place, quickstart.environment), words, by_hand)

    assert walk.through(ROOT / "README.md")
    use(quickstart.var)
    assert walk.through(ROOT / "docs/tutorial/first-state.md")


def use(var: Path) -> None:
    """Add other users' data to the service."""
    settings = (var / "service.env").read_text()
    (keys,) = re.findall("^STATE_ENCRYPTION_KEYS=(.+)$", settings, re.MULTILINE)
    LiveServer(var, STATE_ENCRYPTION_KEYS=keys).run_commands(("seed_demo", *A_FEW))
