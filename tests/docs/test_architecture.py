"""The map names files that exist, and the glossary is sorted."""

import re

from tests.docs.walk import ROOT

TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text()
APPS = ("apikeys", "states", "workloads")


def test_files_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", TEXT))
    of_each_app = {n for n in named if n.startswith(("admin/", "api/", "management/", "models/"))}
    all_named = named - of_each_app | {f"{app}/{name}" for app in APPS for name in of_each_app}

    assert len(named) > 40
    assert [name for name in sorted(all_named) if not (ROOT / name).exists()] == []


def test_files_of_a_room_exist() -> None:
    rooms = re.findall(r"^\| `([\w/]+/)` \| (.*) \|$", TEXT, re.MULTILINE)
    named = [(room, name) for room, text in rooms for name in re.findall(r"`(\w+\.py)`", text)]

    assert len(named) > 30
    assert [(r, n) for r, n in named if not (ROOT / r / n).exists()] == []


def test_the_reading_list_names_forty_files_and_their_lengths() -> None:
    listed = re.findall(r"^\| `([\w/]+\.py)` \| (\d+) \|", TEXT, re.MULTILINE)
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name, _ in listed}

    assert len(lengths) == len(listed) == 40
    assert [
        (name, stated, lengths[name])
        for name, stated in listed
        if abs(int(stated) - lengths[name]) > max(15, lengths[name] / 6)
    ] == []


def test_terms_are_in_order() -> None:
    words = re.findall(r"^\| \[?([\w ,-]+)(?:\]\(\S+\))? \|", GLOSSARY, re.MULTILINE)[1:]

    assert len(words) >= 40
    assert words == sorted(words, key=str.lower)
