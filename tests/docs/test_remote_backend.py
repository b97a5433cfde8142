"""The reference of the remote backend lists each route, and its how-to shows the clients."""

from __future__ import annotations

import re

from states.remote.urls import ROUTES
from tests.docs.walk import ROOT

REFERENCE = (ROOT / "docs/reference/remote-backend.md").read_text()
PAGE = (ROOT / "docs/how-to/use-workspaces.md").read_text()


def test_routes_and_methods_match() -> None:
    documented = re.findall(r"^\| `([^`]+)` \| ([A-Z, ]+) \|", REFERENCE, re.MULTILINE)
    routes = [
        (
            re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", path),
            ", ".join(method.upper() for method in actions if method != "head"),  # DRF adds it
        )
        for path, _name, _view, actions in ROUTES
    ]
    assert documented == routes


def test_blocks_are_those_of_the_tests() -> None:
    """tests/e2e/test_remote.py runs the real client with such blocks."""
    blocks = re.findall(r"```hcl\n(.*?)```", PAGE, re.DOTALL)
    assert [re.sub(r"\s+", " ", block).split(" {")[1] for block in blocks] == [
        " cloud",
        ' backend "remote"',
    ]
    for block in blocks:
        assert set(re.findall(r"^\s+(\w+) +=", block, re.MULTILINE)) == {"hostname", "organization"}
