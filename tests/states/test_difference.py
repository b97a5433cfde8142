"""Differences between two documents."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.document import contents, difference, sealing
from states.document.answers import ChangeCounts, DifferenceSummary
from states.document.hidden import MASK
from states.document.work_limit import Effort
from states.errors import StateEncrypted, StateFormatUnsupported
from tests.states.samples import (
    AFTER,
    BEFORE,
    ENCRYPTED,
    PASSWORDS,
    instance,
    path,
    resource,
    state,
)


def diff(before: bytes | None, after: bytes, **options: Any) -> contents.ChangePage:
    options = {"start": 0, "size": 1000, "hide": True, **options}
    old = None if before is None else sealing.compress(before)
    return contents.diff(old, sealing.compress(after), **options)


def resources(before: bytes, after: bytes, *, hide: bool = True) -> list[Any]:
    found: list[Any] = msgspec.json.decode(diff(before, after, hide=hide).resources)
    return found


def changes(old: Any, new: Any, *paths: Any, hide: bool = True) -> list[Any]:
    """Return the attribute changes of a single resource."""
    before, after = (state(resource("x", instance(v, *paths))) for v in (old, new))
    found: list[Any] = [c for r in resources(before, after, hide=hide) for c in r["attributes"]]
    return found


def metadata(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    before, after = (state(resource("x", instance(**more))) for more in (old, new))
    return [c for r in resources(before, after) for c in r["metadata"]]


def change(where: str, action: str, before: Any, after: Any, sensitive: bool = False) -> Any:
    return {
        "path": where,
        "action": action,
        "before": before,
        "after": after,
        "sensitive": sensitive,
    }


def test_recorded_states_are_compared() -> None:
    page = diff(BEFORE, AFTER)

    assert page.versions == ("1.11.4", "1.11.4")
    assert page.summary == DifferenceSummary(
        outputs=ChangeCounts(added=0, changed=4, removed=0),
        resources=ChangeCounts(added=6, changed=7, removed=3),
        check_results=ChangeCounts(added=0, changed=0, removed=0),
    )
    shown = {
        (r["address"], r["deposed"] is not None): (
            r["action"],
            [c["path"] for c in r["attributes"]],
            [m["field"] for m in r["metadata"]],
        )
        for r in msgspec.json.decode(page.resources)
    }
    disk = 'module.app["{}"].module.disk.terraform_data.disk["{}"]'
    password = ["input.password", "output.password"]
    replaced = ["id", "triggers_replace[0]"]
    assert shown == {
        **{(disk.format("ap", key), False): ("ADDED", [], []) for key in ("a b", 'c\\"d')},
        **{(disk.format("us", key), False): ("REMOVED", [], []) for key in ("a b", 'c\\"d')},
        **{(disk.format("eu", key), False): ("CHANGED", password, []) for key in ("a b", 'c\\"d')},
        ('module.app["ap"].terraform_data.node[0]', False): ("ADDED", [], []),
        ('module.app["ap"].terraform_data.node[1]', False): ("ADDED", [], []),
        ('module.app["eu"].terraform_data.node[1]', False): ("ADDED", [], []),
        ('module.app["us"].terraform_data.node[0]', False): ("REMOVED", [], []),
        ("terraform_data.counted[1]", False): ("CHANGED", [], ["status"]),
        ("terraform_data.dependent", False): ("CHANGED", replaced, ["status"]),
        ("terraform_data.plain", False): ("CHANGED", ["input.size", "output.size"], []),
        ("terraform_data.replaced", False): ("CHANGED", replaced, []),
        ("terraform_data.replaced", True): ("ADDED", [], []),
        ("terraform_data.secret", False): (
            "CHANGED",
            [
                "id",
                *(
                    f"{side}.{name}"
                    for side in ("input", "output")
                    for name in ("list[1]", "map.key", "password")
                ),
                "triggers_replace[0]",
            ],
            [],
        ),
    }


def test_recorded_states_hide_passwords() -> None:
    page = diff(BEFORE, AFTER)
    hidden = bytes(page.outputs) + bytes(page.resources)
    assert not any(password in hidden for password in PASSWORDS)

    page = diff(BEFORE, AFTER, hide=False)
    shown = bytes(page.outputs) + bytes(page.resources)
    assert all(password in shown for password in PASSWORDS)


def test_same_document_has_no_difference() -> None:
    assert diff(AFTER, AFTER).summary.resources == ChangeCounts(added=0, changed=0, removed=0)


def test_first_version_only_adds() -> None:
    page = diff(None, AFTER)

    assert page.versions == (None, "1.11.4")
    assert page.summary.outputs == ChangeCounts(added=4, changed=0, removed=0)
    assert page.summary.resources == ChangeCounts(added=16, changed=0, removed=0)


def test_data_source_and_removed_resource_are_compared() -> None:
    data = resource("x", instance({"a": 1}), mode="data", module="module.m")

    (found,) = resources(state(data), state())

    assert found == {
        "address": "module.m.data.thing.x",
        "deposed": None,
        "module": "module.m",
        "mode": "data",
        "type": "thing",
        "name": "x",
        "index_key": None,
        "action": "REMOVED",
        "attributes": [],
        "metadata": [],
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 2}, [change("a", "CHANGED", 1, 2)]),
        ({"a": 1}, {"b": 1}, [change("a", "REMOVED", 1, None), change("b", "ADDED", None, 1)]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]},
         [change("a[1]", "CHANGED", 2, 3), change("a[2]", "ADDED", None, 4)]),
        ({"a": [1, 2]}, {"a": [1]}, [change("a[1]", "REMOVED", 2, None)]),
        ({"a": {"k k": {"b": 1}}}, {"a": {"k k": {"b": 2}}},
         [change('a["k k"].b', "CHANGED", 1, 2)]),
        ({"a": None}, {"a": {"b": 1}}, [change("a", "CHANGED", None, {"b": 1})]),
        ({"a": [1]}, {"a": {"0": 1}}, [change("a", "CHANGED", [1], {"0": 1})]),
        # As JSON, true is not 1, and 1.0 is.
        ({"a": True}, {"a": 1}, [change("a", "CHANGED", True, 1)]),
        ({"a": 1.0}, {"a": 1}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, []),
        # A dynamic value's wrapper is no part of a path.
        ({"a": {"value": {"b": 1}, "type": ["object", {}]}},
         {"a": {"value": {"b": 2}, "type": ["object", {}]}}, [change("a.b", "CHANGED", 1, 2)]),
        ({"a": {"value": [1], "type": ["list", "number"]}},
         {"a": {"value": [1], "type": ["set", "number"]}},
         [change("a.type[0]", "CHANGED", "list", "set")]),
        ({"a": {"value": 1, "type": "number"}}, {"a": None},
         [change("a", "CHANGED", {"value": 1, "type": "number"}, None)]),
    ],
)  # fmt: skip
def test_attributes_are_compared(old: Any, new: Any, expected: list[Any]) -> None:
    assert changes(old, new) == expected


def test_digits_beyond_a_float_are_compared() -> None:
    old, new = (
        state(resource("x", instance({"n": 0}))).replace(b'"n": 0', b'"n": ' + digits)
        for digits in (b"0.1234567890123456789012345", b"0.1234567890123456789012346")
    )

    page = diff(old, new)

    assert b'"before":0.1234567890123456789012345,' in bytes(page.resources)
    assert b'"after":0.1234567890123456789012346,' in bytes(page.resources)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"status": "tainted"}, {}, [{"field": "status", "before": "tainted", "after": None}]),
        ({"schema_version": 1}, {"schema_version": 2},
         [{"field": "schema_version", "before": 1, "after": 2}]),
        ({"dependencies": ["a.b", "c.d"]}, {"dependencies": ["a.b"]},
         [{"field": "dependencies", "before": ["a.b", "c.d"], "after": ["a.b"]}]),
        ({"dependencies": ["a.b", "c.d"]}, {"dependencies": ["c.d", "a.b"]}, []),
        ({"create_before_destroy": True}, {},
         [{"field": "create_before_destroy", "before": True, "after": False}]),
        ({"sensitive_attributes": [path("a")]}, {"sensitive_attributes": []},
         [{"field": "sensitive_attributes", "before": ["a"], "after": []}]),
        ({"private": "YQ=="}, {"private": "Yg=="},
         [{"field": "private", "before": MASK, "after": MASK}]),
        ({"private": "YQ=="}, {}, [{"field": "private", "before": MASK, "after": None}]),
        ({}, {"skip_destroy": True}, [{"field": "skip_destroy", "before": False, "after": True}]),
        ({}, {"depends_on": ["a.b"]}, [{"field": "depends_on", "before": [], "after": ["a.b"]}]),
        ({"provider": "x"}, {"provider": "y"},
         [{"field": "provider", "before": "x", "after": "y"}]),
        ({"identity": {"id": 1}, "identity_schema_version": 0}, {"identity_schema_version": 1},
         [{"field": "identity_schema_version", "before": 0, "after": 1},
          {"field": "identity", "before": {"id": 1}, "after": None}]),
    ],
)  # fmt: skip
def test_metadata_is_compared(old: Any, new: Any, expected: list[Any]) -> None:
    assert metadata(old, new) == expected


def test_other_provider_is_a_difference() -> None:
    before, after = (state(resource("x", instance(), provider=name)) for name in ("p", "q"))

    ((found,),) = ([r["metadata"] for r in resources(before, after)],)

    assert found == [{"field": "provider", "before": "p", "after": "q"}]


def test_deposed_object_is_compared_separately() -> None:
    before = state(resource("x", instance({"a": 1})))
    after = state(resource("x", instance({"a": 2}), instance({"a": 1}, deposed="0badcafe")))

    found = [(r["deposed"], r["action"]) for r in resources(before, after)]

    assert found == [(None, "CHANGED"), ("0badcafe", "ADDED")]


def test_a_marked_place_is_not_looked_into() -> None:
    old, new = ({"a": {"user": user, "n": 1}, "b": 1} for user in ("ann", "ben"))

    assert changes(old, new, path("a")) == [change("a", "CHANGED", MASK, MASK, True)]
    assert changes(old, new, path("a"), hide=False) == [
        change("a.user", "CHANGED", "ann", "ben", True)
    ]


MANY = {str(n): n for n in range(100)}


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        (7, "7", True),
        ([1], [2], True),
        ([1], [1.0], False),
        ({"b": 1, "c": 2}, {"c": 2, "b": 1}, False),
        ({"b": 1, "c": 2}, {"b": 2, "c": 1}, True),
        (MANY, MANY, False),
        (MANY, {**MANY, "7": 8}, True),
    ],
)
def test_masked_values_differ_when_their_values_differ(old: Any, new: Any, differ: bool) -> None:
    expected = [change("a", "CHANGED", MASK, MASK, True)] if differ else []
    beside = change("n", "CHANGED", "x", "y")  # where nothing differs, nothing is hidden to compare

    assert changes({"a": old, "n": "x"}, {"a": new, "n": "y"}, path("a")) == [*expected, beside]


def test_a_mark_that_is_taken_away_still_hides() -> None:
    before = state(resource("x", instance({"a": "first-secret"}, path("a"))))
    after = state(resource("x", instance({"a": "first-secret", "b": "my first-secret"})))

    (found,) = resources(before, after)

    assert found["attributes"] == [change("b", "ADDED", None, MASK, True)]
    assert [m["field"] for m in found["metadata"]] == ["sensitive_attributes"]


def test_added_and_removed_sensitive_values_are_hidden() -> None:
    found = changes({"a": "x"}, {"b": {"c": "y", "d": 1}}, path("a"))
    assert found[0] == change("a", "CHANGED", "x", None) or found[0]["before"] == MASK

    before = state(resource("x", instance({"a": {}})))
    after = state(resource("x", instance({"a": {"b": "s"}}, path("a", "b"))))
    ((added,),) = ([r["attributes"] for r in resources(before, after)],)
    assert added == [change("a.b", "ADDED", None, MASK, True)]


def test_scope_discloses_sensitive_values() -> None:
    found = changes({"a": "x"}, {"a": "y"}, path("a"), hide=False)

    assert found == [change("a", "CHANGED", "x", "y", True)]


def test_outputs_are_compared() -> None:
    def outputs(**values: Any) -> bytes:
        return state(outputs=values)

    def output(value: Any, kind: Any = "string", sensitive: bool = False) -> dict[str, Any]:
        return {"value": value, "type": kind, "sensitive": sensitive}

    before = outputs(
        gone=output("x"),
        same=output("x"),
        flag=output("xy", sensitive=True),
        deep=output({"a": 1, "b": [1]}, ["object", {}]),
        kind=output([1], ["list", "number"]),
    )
    after = outputs(
        new=output("x"),
        same=output("x"),
        flag=output("xy"),
        deep=output({"a": 2, "b": []}, ["object", {}]),
        kind=output([1], ["set", "number"]),
    )

    page = diff(before, after)

    assert page.summary.outputs == ChangeCounts(added=1, changed=3, removed=1)
    assert msgspec.json.decode(page.outputs) == [
        {
            "name": "deep",
            "action": "CHANGED",
            "attributes": [
                change("value.a", "CHANGED", 1, 2),
                change("value.b[0]", "REMOVED", 1, None),
            ],
            "metadata": [],
        },
        {
            "name": "flag",
            "action": "CHANGED",
            "attributes": [],
            "metadata": [{"field": "sensitive", "before": True, "after": False}],
        },
        {"name": "gone", "action": "REMOVED", "attributes": [], "metadata": []},
        {
            "name": "kind",
            "action": "CHANGED",
            "attributes": [],
            "metadata": [
                {"field": "type", "before": ["list", "number"], "after": ["set", "number"]}
            ],
        },
        {"name": "new", "action": "ADDED", "attributes": [], "metadata": []},
    ]


def test_pages_contain_every_item_once() -> None:
    whole = diff(BEFORE, AFTER)
    outputs: list[Any] = []
    found: list[Any] = []
    start, more = 0, True
    while more:
        page = diff(BEFORE, AFTER, start=start, size=3)
        assert page.summary == whole.summary
        outputs += msgspec.json.decode(page.outputs)
        found += msgspec.json.decode(page.resources)
        start, more = start + 3, page.more

    assert outputs == msgspec.json.decode(whole.outputs)
    assert found == msgspec.json.decode(whole.resources)


def test_encrypted_states_are_refused() -> None:
    with pytest.raises(StateEncrypted):
        diff(ENCRYPTED, AFTER)


def test_values_nested_deeper_than_python_goes() -> None:
    deep = b"[" * 700 + b"%d" + b"]" * 700
    before, after = (
        state(resource("x", instance({"a": 0}))).replace(b'"a": 0', b'"a": ' + deep % n)
        for n in (1, 2)
    )

    with pytest.raises(StateFormatUnsupported, match="nested too deeply"):
        diff(before, after)


@pytest.mark.parametrize(("size", "turns"), [(1000, 0), (9_000_000, 1)])
def test_large_documents_take_turns(monkeypatch: pytest.MonkeyPatch, size: int, turns: int) -> None:
    """Including documents that are small only while compressed with gzip."""
    taken = []
    turn = contextlib.ExitStack()
    turn.callback(taken.append, size)
    monkeypatch.setattr("states.document.concurrency._reading", turn)

    found = diff(None, state(resource("x", instance({"a": "x" * size}))))

    assert found.summary.resources.added == 1
    assert len(taken) == turns


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(old=_json, new=_json)
def test_there_are_changes_where_values_differ(old: Any, new: Any) -> None:
    found = changes({"v": old}, {"v": new}, hide=False)

    assert bool(found) == difference.differs(old, new, Effort(0))
    for change in found:
        assert change["action"] != "CHANGED" or difference.differs(
            change["before"], change["after"], Effort(0)
        )


@given(value=_json)
def test_value_equals_itself(value: Any) -> None:
    assert not difference.differs(value, msgspec.json.decode(msgspec.json.encode(value)), Effort(0))
