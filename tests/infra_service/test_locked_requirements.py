"""The lock files agree: extras can be installed together, and are what the tests ran with."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.installation import ROOT

LOCKS = sorted(ROOT.glob("requirements*.txt"))


def test_each_package_has_one_version() -> None:
    pinned: dict[str, set[str]] = defaultdict(set)
    for lock in LOCKS:
        for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE):
            pinned[name].add(version)

    assert len(pinned) > 100
    assert {name: found for name, found in pinned.items() if len(found) > 1} == {}


def test_no_index_is_named() -> None:
    named = re.compile(r"^-(i|-index|-extra-index|f|-find-links)|://", re.MULTILINE)

    assert [lock.name for lock in LOCKS if named.search(lock.read_text())] == []
