"""Another serial and lineage, and every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.document.restamp import replace_serial_and_lineage
from states.errors import StateFormatUnsupported
from tests.states.samples import AFTER


def test_recorded_state_is_read() -> None:
    lineage = json.loads(AFTER)["lineage"]

    changed = replace_serial_and_lineage(AFTER, serial=4711, lineage=lineage)

    before, after = AFTER.splitlines(), changed.splitlines()
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        (b'  "serial": %d,' % json.loads(AFTER)["serial"], b'  "serial": 4711,')
    ]
    assert b"0.1234567890123456789012345" in changed


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"{}", b"{}"),
        (b" { }\n", b" { }\n"),
        (b'{"serial":1}', b'{"serial":7}'),
        (b'{ "lineage"\t:"a" , "serial" : 123\n}', b'{ "lineage"\t:"new\\"" , "serial" : 7\n}'),
        (b'{"a":{"serial":1},"serial":2}', b'{"a":{"serial":1},"serial":7}'),
        (b'{"a":"\\"serial\\":1","serial":2}', b'{"a":"\\"serial\\":1","serial":7}'),
        (b'{"ser\\u0069al":2,"\xc3\xa9":[1.50]}', b'{"ser\\u0069al":7,"\xc3\xa9":[1.50]}'),
        # Absent members stay absent, and null counts as absent.
        (b'{"serial":null,"lineage":""}', b'{"serial":null,"lineage":"new\\""}'),
        (b'{"lineage":null}', b'{"lineage":null}'),
    ],
)
def test_documents_are_read(document: bytes, expected: bytes) -> None:
    assert replace_serial_and_lineage(document, serial=7, lineage='new"') == expected


def test_without_a_lineage_the_document_keeps_its_own() -> None:
    assert replace_serial_and_lineage(b'{"serial":1,"lineage":"x"}', serial=2, lineage=None) == (
        b'{"serial":2,"lineage":"x"}'
    )


@pytest.mark.parametrize(
    "document",
    [
        b'{"serial":1,"a":2,"serial":2}',
        b'{"serial":1,"serial":1}',
        b'{"a":12,"serial":1,"a":1}',
        b'{"a":1,"serial":1,"a":22}',
        b'{"a":1,"serial":1,"a":1}',
    ],
)
def test_repeated_member_name(document: bytes) -> None:
    with pytest.raises(StateFormatUnsupported, match="a member is repeated"):
        replace_serial_and_lineage(document, serial=7, lineage=None)


_names = st.sampled_from(["serial", "lineage", "version", "a", "é", 'q"', "resources"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5
)


@pytest.mark.slow
@given(
    members=st.dictionaries(_names, _values),
    head=st.fixed_dictionaries(
        {"serial": st.integers(0, 2**62)}, optional={"lineage": st.text(max_size=20)}
    ),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
def test_any_document_is_read_or_refused(
    members: dict[str, Any], head: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    """As JSON only the two members change, and as bytes nothing but their values."""
    members = {**members, **head, "lineage": head.get("lineage", "x").replace("\0", "")}

    def written(body: dict[str, Any]) -> bytes:
        return json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode()

    changed = replace_serial_and_lineage(written(members), serial=7, lineage="new")

    assert changed == written({**members, "serial": 7, "lineage": "new"})
