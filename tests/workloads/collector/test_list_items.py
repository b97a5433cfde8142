"""The items of a list as its bytes come, wherever they are cut."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.apiserver import recorded
from workloads.collector import list_items as module
from workloads.collector.list_items import list_items

SMALL = json.dumps(
    {"kind": "List", "metadata": {"n": 12.5e1}, "items": [{"é": '}],"'}, {}, {"b": [[{}], "\\"]}]},
    ensure_ascii=False, indent=1,
).encode()  # fmt: skip


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_wherever_it_is_cut(size: int) -> None:
    assert list(list_items(cut(SMALL, size))) == json.loads(SMALL)["items"]


@pytest.mark.parametrize("size", [1000, 64 * 1024])
def test_a_recorded_list(size: int) -> None:
    answer = recorded("list-podmetrics.json")

    assert list(list_items(cut(json.dumps(answer).encode(), size))) == answer["items"]


def test_they_come_before_the_list_has_ended() -> None:
    items = list_items(iter([b'{"items": [{"a": 1}, {"a"', b": 2}", b"nonsense"]))

    assert [next(items), next(items)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(ValueError, match="'n' is not one of"):
        next(items)


def test_truncated_list_is_rejected() -> None:
    """Wherever that is: a part of the pods would make a sum that is wrong."""
    for at in range(len(SMALL)):
        with pytest.raises(ValueError):  # noqa: PT011 - the text is whatever comes there
            list(list_items(cut(SMALL[:at], 7)))


@pytest.mark.parametrize("body", [b"{}", b" { } \n", b'{"items": null}', b'{"items":[ ]}'])
def test_list_without_items_is_rejected(body: bytes) -> None:
    assert list(list_items(cut(body, 1))) == []


@pytest.mark.parametrize("body", [
    b"", b"[]", b"null", b"<html>", b'{"items": {}}', b'{"items": 1}', b'{"items": "n"}',
    b'{"items": [1]}', b'{"items": [null]}', b'{"items": [{},]}', b'{"items": [{}}]', b"{} {}",
    b'{"items": [{"a": "\xff"}]}', b'{"a" 1}', b'{"items": [{"a": nonsense}]}',
])  # fmt: skip
def test_malformed_list_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - as above
        list(list_items(cut(body, 4)))


def test_deeply_nested_list_is_rejected() -> None:
    with pytest.raises(RecursionError):
        list(list_items([b'{"items": [{"a":' + b"[" * 100_000]))


def test_an_item_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit, each piece of a long item would be decoded again with all before it."""
    monkeypatch.setattr(module, "_LONGEST", 100)
    taken = []

    def blocks() -> Iterator[bytes]:
        yield b'{"items": [{"a": "'
        while True:
            taken.append(1)
            yield b"a" * 30

    with pytest.raises(ValueError, match="more than 100 characters"):
        list(list_items(blocks()))
    assert len(taken) < 10
