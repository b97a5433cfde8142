"""The tutorial and README.md, from ``make run`` to their last line, with the real terraform."""

import re
from pathlib import Path

import pytest

from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.quickstart import Quickstart

pytestmark = [pytest.mark.terraform, needs_terraform]


def walk_from_nothing(document: Path, place: Path, quickstart: Quickstart) -> int:
    """Walk a document that begins with the clone and ``make run``."""
    words = {"http://127.0.0.1:8000": quickstart.place.url}

    def make_run() -> str:
        printed = quickstart.start()
        (words["isp_…"],) = re.findall(r"isp_\w{38}", printed)
        return printed

    by_hand = {
        "git clone <this repository> infra-service && cd infra-service": lambda: "",
        "make run": make_run,
    }
    walk = Walk(place, readers(place, quickstart.environment), words, by_hand)
    return walk.through(document)


def test_first_state(place: Path, quickstart: Quickstart) -> None:
    commands = walk_from_nothing(ROOT / "docs/tutorial/first-state.md", place, quickstart)

    assert commands == 38
