"""Which places of a state are marked sensitive (``sensitive_attributes`` of format 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from states import terraform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from states.terraform import Instance

#: Marked places as a tree: a key or position to what is marked under it; True is all of it.
Marks = dict[Any, Any] | Literal[True]

Step = str | int | None
_NOTHING: Final[dict[Any, Any]] = {}
_PRIMITIVES: Final = frozenset({"string", "number", "bool", "dynamic"})


class _PathStep(msgspec.Struct, frozen=True, gc=False):
    """``{"type": "get_attr", "value": "name"}`` or ``{"type": "index", "value": {"value": 0, …}}``.

    Terraform's ``pathStep`` in version4.go.
    """

    type: str
    value: Any = None


_paths: Final = msgspec.json.Decoder(list[list[_PathStep]])


def _step(step: _PathStep) -> Step:
    """Return the attribute, key or position; None where a step leads into a set, say."""
    value = step.value
    if step.type == "index" and isinstance(value, dict):
        value = value.get("value")
    is_key = isinstance(value, str | int) and not isinstance(value, bool)
    return value if is_key else None


def paths(instance: Instance) -> list[list[Step]]:
    """Return the paths that an instance marks.

    Raises:
        StateFormatUnsupported: what stands there is no list of paths.
    """
    marked = terraform.decode_with(_paths, instance.sensitive_attributes)
    return [[_step(step) for step in path] for path in marked]


def path_text(path: Iterable[Step]) -> str:
    """Return a path as Terraform writes it: ``disks[0].labels["a b"]``."""
    text = ""
    for step in path:
        text = extended(text, "?" if step is None else step)
    return text


def extended(path: str, key: str | int) -> str:
    """Return the path of something in what this path names."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        return f"{path}[{terraform.quoted(key)}]"
    return f"{path}.{key}" if path else key


def is_dynamic(value: Any) -> bool:
    """Whether this is how a value of a type unknown to the schema is written: with its type."""
    if not isinstance(value, dict) or value.keys() != {"value", "type"}:
        return False
    kind = value["type"]
    return isinstance(kind, list) or (isinstance(kind, str) and kind in _PRIMITIVES)


def marks_of(instance: Instance, values: Any) -> Marks:
    """Return where the decoded attributes of the instance are marked."""
    marks: Marks = {}
    for path in paths(instance):
        marks = _marked(marks, values, path)
    return marks


def _marked(marks: Marks, value: Any, path: Sequence[Step]) -> Marks:
    """Return the marks with this path added."""
    if marks is True or not path:
        return True
    if value is None:
        return marks
    if is_dynamic(value):
        # Paths are of values: they do not name the wrapper, except where there is none.
        marks["value"] = _marked(marks.get("value", {}), value["value"], path)
        if path[0] == "type":
            marks["type"] = True
        return marks
    step, rest = path[0], path[1:]
    if not _leads_on(value, step):
        return True
    marks[step] = _marked(marks.get(step, {}), value[step], rest)
    return marks


def _leads_on(value: Any, step: Step) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def below(marks: Marks, key: str | int) -> Marks:
    """Return the marks of what has this key."""
    found: Marks = True if marks is True else marks.get(key, _NOTHING)
    return found


def marked_values(value: Any, marks: Marks) -> Iterator[Any]:
    """Yield the marked values, whole."""
    if marks is True:
        yield value
        return
    for key, inner in marks.items():
        yield from marked_values(value[key], inner)
