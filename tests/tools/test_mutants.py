"""Each module and test that ``make mutants`` uses exists."""

import gc
import tomllib
from pathlib import Path

import pytest

from tools.mutants import swapping
from tools.mutants.rooms import ROOMS, rooms_below

ROOT = Path(__file__).resolve().parents[2]


def test_each_module_and_each_of_its_tests_is_there() -> None:
    files = {file for room, tests in ROOMS.items() for file in (room, *tests)}

    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_surviving_mutants_belong_to_known_modules() -> None:
    alive = tomllib.loads((ROOT / "tools/mutants/alive.toml").read_text())["alive"]

    assert {entry["room"] for entry in alive} <= set(ROOMS)
    assert all(entry["why"] and entry["changes"] for entry in alive)


def test_an_unknown_module_fails() -> None:
    with pytest.raises(SystemExit, match="no module"):
        rooms_below("states/rules")


def test_surviving_mutants_change_existing_lines() -> None:
    alive = tomllib.loads((ROOT / "tools/mutants/alive.toml").read_text())["alive"]
    text = {
        room: " ".join(line.strip() for line in (ROOT / room).read_text().splitlines())
        for room in {entry["room"] for entry in alive}
    }
    lines = [(entry["room"], change["was"]) for entry in alive for change in entry["changes"]]

    assert [(room, was) for room, was in lines if was not in text[room]] == []


def test_functions_are_found_though_they_are_frozen() -> None:
    gc.freeze()
    found = swapping.functions_of(swapping.__file__)
    gc.freeze()

    assert swapping.functions_of in found
