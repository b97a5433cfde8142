"""The places of a state that are marked as sensitive."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from states.document import sensitive_paths
from states.document.format4 import Instance
from states.document.work_limit import Effort
from states.errors import StateFormatUnsupported
from tests.states.samples import path


def marked(values: Any, *paths: Any) -> sensitive_paths.Marks:
    raw = msgspec.Raw(json.dumps(paths).encode())
    return sensitive_paths.marks_of(Instance(sensitive_attributes=raw), values, Effort(0))


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        ({"a": "x"}, ["a"], {"a": True}),
        ({"a": {"b": "x", "c": 1}}, ["a", "b"], {"a": {"b": True}}),
        ({"a": [1, 2]}, ["a", 1], {"a": {1: True}}),
        ({"a": [1, 2]}, ["a", 0], {"a": {0: True}}),
        ({"a": {"k k": 1}}, ["a", "[k k"], {"a": {"k k": True}}),
        # Null has nothing under it, and a null that is marked itself is hidden.
        ({"a": None}, ["a", "b"], {"a": {}}),
        ({"a": None}, ["a"], {"a": True}),
        # A value of a dynamic type stands in a wrapper that no path names.
        ({"a": {"value": {"b": 1}, "type": ["object", {}]}}, ["a", "b"],
         {"a": {"value": {"b": True}}}),
        ({"a": {"value": "x", "type": "string"}}, ["a"], {"a": True}),
        # Attributes that only resemble a typed value.
        ({"a": {"value": "x", "type": "A"}}, ["a", "type"], {"a": {"type": True}}),
        ({"a": {"value": "x", "type": "string"}}, ["a", "type"],
         {"a": {"value": True, "type": True}}),
        ({"a": {"value": "x", "type": 3}}, ["a", "value"], {"a": {"value": True}}),
        # A path that leads nowhere hides everything below its last valid step.
        ({"a": {"b": 1}}, ["a", "gone"], {"a": True}),
        ({"a": {"b": 1}}, ["a", "gone", "b"], {"a": True}),
        ({"a": [1]}, ["a", 1], {"a": True}),
        ({"a": [1]}, ["a", -1], {"a": True}),
        ({"a": [1]}, ["a", "[0"], {"a": True}),
        ({"a": "x"}, ["a", "b"], {"a": True}),
        ({"a": "x"}, [], True),
    ],
)  # fmt: skip
def test_paths_are_parsed(values: Any, steps: list[Any], expected: Any) -> None:
    assert marked(values, path(*steps)) == expected


def test_several_paths_are_parsed() -> None:
    values = {"a": {"b": 1, "c": 2}, "d": 3}

    assert marked(values, path("a", "b"), path("d")) == {"a": {"b": True}, "d": True}
    assert marked(values, path("a"), path("a", "b")) == {"a": True}
    dynamic = {"a": {"value": "x", "type": "string"}}
    assert marked(dynamic, path("a"), path("a", "type")) == {"a": True}


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ({"a": [{"b": "x"}]}, ("a", 0, "b")),
        ({"a": {"value": {"b": "x"}, "type": ["object", {}]}}, ("a", "b")),
        ({"a": {"value": {"type": "x"}, "type": ["object", {}]}}, ("a", "type")),
        # These maps are not wrappers.
        ({"a": {"value": "x", "other": 1}}, ("a", "value")),
        ({"a": {"value": "y", "type": "x"}}, ("a", "type")),
    ],
)
def test_marked_value_has_its_path_without_wrappers(values: Any, steps: tuple[Any, ...]) -> None:
    marks = marked(values, path(*steps))

    assert (steps, "x") in sensitive_paths.marked_values(values, marks)


@pytest.mark.parametrize(
    "step",
    [
        {"type": "index", "value": {"value": {"a": 1}, "type": ["object", {"a": "number"}]}},
        {"type": "index", "value": {"value": True, "type": "bool"}},
        {"type": "get_attr", "value": {"value": "a"}},
        {"type": "splat"},
    ],
)
@pytest.mark.parametrize("value", [[{"a": 1}], {"a": 1}])
def test_steps_into_values_without_keys_are_ignored(step: Any, value: Any) -> None:
    assert marked({"a": value}, [*path("a"), step]) == {"a": True}


def test_an_index_without_its_type() -> None:
    step = {"type": "index", "value": "b"}

    assert marked({"a": {"b": 1}}, [*path("a"), step]) == {"a": {"b": True}}


@pytest.mark.parametrize("paths", [{"a": 1}, [[1]], [{"type": "get_attr"}]])
def test_missing_paths_are_accepted(paths: Any) -> None:
    with pytest.raises(StateFormatUnsupported):
        sensitive_paths.paths(
            Instance(sensitive_attributes=msgspec.Raw(json.dumps(paths).encode())), Effort(0)
        )


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (["a", "b"], "a.b"),
        (["a", 0, "b"], "a[0].b"),
        (["a", "x y"], 'a["x y"]'),
        (["x-y"], '["x-y"]'),
        (["a", None], "a.?"),
        ([], ""),
    ],
)
def test_paths_are_formatted(steps: list[Any], text: str) -> None:
    assert sensitive_paths.path_text(steps).replace('["?"]', ".?") == text
