"""Output on a terminal: width, colours, and text that a terminal would interpret."""

from __future__ import annotations

import json
import re
import unicodedata

from tests.client.conftest import SomeState
from tests.client.front import Front, answer
from tests.client.running import Client
from tests.states.samples import state as sample

COLOUR = re.compile(r"\x1b\[[0-9]*m")
#: Clear the screen, set the title, reverse the text, go back, and an 8-bit control sequence.
HOSTILE = "a\x1b[2J\x1b]0;title\x07\u202eb\rc\x08\x9b31m\u200bd\n"
LOCKED = {
    "id": "01a0816f-dcd1-7469-9c4f-d205f61cb732",
    "component_slug": "network",
    "environment_slug": "production",
    "application_slug": "a-very-long-application-name",
    "serial": 12,
    "size_bytes": 3621,
    "updated_at": "2026-11-24T08:35:22.104080Z",
    "lock": {"who": HOSTILE + "日本語" * 30},
}


def listed(*states: object) -> str:
    return json.dumps({"states": states, "next_page_token": ""})


def width(line: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line)


def test_no_control_character_of_a_state_reaches_the_terminal(
    through_front: Client, front: Front
) -> None:
    front.script.extend([answer("200 OK", listed(LOCKED))] * 2)

    shown = COLOUR.sub("", through_front.on_terminal("states", columns=300))

    assert r"locked by a\x1b[2J\x1b]0;title\x07\u202eb\rc\x08\x9b31m\u200bd\n日本語" in shown
    assert [letter for letter in shown if not letter.isprintable()] == ["\n"] * 2
    # Programs get the same text in JSON, which is also safe to print.
    printed = through_front.run("states", "--json").stdout
    assert printed.isascii()
    assert json.loads(printed) == [LOCKED]


def test_cells_are_cut_to_the_width_of_the_terminal(through_front: Client, front: Front) -> None:
    for columns in (80, 50, 30, 10):
        front.script.append(answer("200 OK", listed(LOCKED, {**LOCKED, "lock": {"who": "ada"}})))

        shown = COLOUR.sub("", through_front.on_terminal("states", columns=columns))

        lines = shown.splitlines()
        assert len(lines) == 3
        assert all(width(line) <= max(columns, 5 * 6 + 4 * 2) for line in lines), shown
        assert "…" in lines[1]
    front.script.append(answer("200 OK", listed(LOCKED)))
    assert "…" not in through_front.run("states").stdout


def test_colours_are_for_terminals_only(through_front: Client, front: Front) -> None:
    front.script.extend([answer("200 OK", listed(LOCKED))] * 3)

    assert COLOUR.search(through_front.on_terminal("states"))
    assert not COLOUR.search(through_front.run("states").stdout)
    through_front.environment["NO_COLOR"] = "1"
    assert not COLOUR.search(through_front.on_terminal("states"))


def test_outputs_and_differences_are_escaped(client: Client, state: SomeState) -> None:
    for serial, text in enumerate((HOSTILE, HOSTILE * 2), 1):
        output = {"value": text, "type": "string"}
        state.push(sample(serial=serial, outputs={"text": output}))

    for words in (("outputs", state.name), ("outputs", state.name, "text"), ("diff", state.name)):
        shown = COLOUR.sub("", client.on_terminal(*words, columns=400))
        assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []
        assert r"\u202e" in shown
    # Without a terminal, the value is exact; subprocess reads a carriage return as a new line.
    exact = (HOSTILE * 2).replace("\r", "\n")
    assert client.run("outputs", state.name, "text").stdout == f"{exact}\n"


def test_a_locale_without_unicode(client: Client, state: SomeState) -> None:
    state.push(sample(outputs={}))
    client.environment |= {"LANG": "en_US.ISO-8859-1", "LC_ALL": "en_US.ISO-8859-1"}

    assert "version 1" in client.run("diff", state.name).stdout
