"""The lock files agree, so that extras can be combined and match the tested versions."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.metadata import distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.installation import ROOT

LOCKS = sorted(ROOT.glob("requirements*.txt"))
PINNED = re.compile(r"^([\w.-]+)(?:\[([^]]*)\])?==([^ ;\\]+)", re.MULTILINE)


def test_each_package_has_a_single_version() -> None:
    pinned: dict[str, set[str]] = defaultdict(set)
    for lock in LOCKS:
        for name, _, version in PINNED.findall(lock.read_text()):
            pinned[name].add(version)

    assert len(pinned) > 100
    assert {name: found for name, found in pinned.items() if len(found) > 1} == {}


def test_packages_are_pinned_with_the_extras_that_dependents_require() -> None:
    """Else pip 23.2, which Python 3.11 brings, fails as soon as a newer version is published."""
    lock = (ROOT / "requirements-dev.txt").read_text()
    pinned = {name: set(extras.split(", ")) for name, extras, _ in PINNED.findall(lock)}

    required: dict[str, set[str]] = defaultdict(set)
    for installed in distributions():
        # Without extras, a marker is evaluated for the extra "".
        extras = pinned.get(canonicalize_name(installed.name), {""})
        for needed in map(Requirement, installed.requires or ()):
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                required[canonicalize_name(needed.name)] |= needed.extras

    assert required["coverage"] == {"toml"}
    assert {name: want for name, want in required.items() if want - pinned.get(name, set())} == {}


def test_no_index_is_named() -> None:
    named = re.compile(r"^-(i|-index|-extra-index|f|-find-links)|://", re.MULTILINE)

    assert [lock.name for lock in LOCKS if named.search(lock.read_text())] == []
