"""Paths that a state marks as sensitive (``sensitive_attributes`` in format 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from states.document import format4
from states.document.address_text import quoted
from states.document.hidden import Hidden, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from states.document.format4 import Instance
    from states.document.work_limit import Effort

#: Marked places as a tree: keys or positions with the marks below them. True marks everything.
Marks = dict[Any, Any] | Literal[True]

Step = str | int | None
_ROOT: Final = ""
_NOTHING: Final[dict[Any, Any]] = {}
_PRIMITIVES: Final = frozenset({"string", "number", "bool", "dynamic"})


class _PathStep(msgspec.Struct, frozen=True, gc=False):
    """A step of a path (``pathStep`` in Terraform's version4.go).

    ``{"type": "get_attr", "value": "name"}`` or ``{"type": "index", "value": {"value": 0, …}}``.
    """

    type: str
    value: Any = None


_paths: Final = msgspec.json.Decoder(list[list[_PathStep] | None] | None)


def _step(step: _PathStep) -> Step:
    """Return the attribute, key or position of a step, or None for a step into a set."""
    value = step.value
    if step.type == "index" and isinstance(value, dict):
        value = value.get("value")
    is_key = isinstance(value, str | int) and not isinstance(value, bool)
    return value if is_key else None


def paths(instance: Instance, effort: Effort) -> list[list[Step]]:
    """Return the paths that an instance marks as sensitive.

    Raises:
        StateFormatUnsupported: the value is not a list of paths.
        StateTooComplex: there are too many paths.
    """
    effort.admit(instance.sensitive_attributes)
    written = format4.decode_with(_paths, instance.sensitive_attributes) or []
    marked = [path or [] for path in written]
    effort.spend(sum(map(len, marked)) + len(marked))
    return [[_step(step) for step in path] for path in marked]


def texts_and_steps(instance: Instance, effort: Effort) -> list[tuple[str, bytes]]:
    """Return the marked paths as texts, each with the JSON of its steps, sorted."""
    texts = map(path_text, paths(instance, effort))
    steps = format4.decode(instance.sensitive_attributes, effort) or ()
    return sorted(zip(texts, map(bytes, map(encode, steps)), strict=True))


def path_text(path: Iterable[Step]) -> str:
    """Return a path in Terraform's notation, such as ``disks[0].labels["a b"]``."""
    parts: list[str] = []
    for step in path:
        parts.append(_extension("?" if step is None else step, first=not parts))
    return "".join(parts)


def extended(path: str, key: str | int) -> str:
    """Return the path of a member of the value at this path."""
    return path + _extension(key, first=not path)


def _extension(key: str | int, *, first: bool) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if not key.isidentifier():
        return f"[{quoted(key)}]"
    return key if first else f".{key}"


def is_dynamic(value: Any) -> bool:
    """Return whether the value is wrapped with its type, which the schema does not define."""
    if not isinstance(value, dict) or value.keys() != {"value", "type"}:
        return False
    kind = value["type"]
    return isinstance(kind, list | Hidden) or (isinstance(kind, str) and kind in _PRIMITIVES)


def marks_of(instance: Instance, values: Any, effort: Effort) -> Marks:
    """Return the marks in the decoded attributes of the instance."""
    root: dict[Any, Any] = {}
    for path in paths(instance, effort):
        _mark(root, values, path)
    marks: Marks = root.get(_ROOT, _NOTHING)
    return marks


def _mark(holder: dict[Any, Any], value: Any, path: Sequence[Step]) -> None:
    """Mark the value at a path, or everything below the last valid step of the path.

    ``holder`` contains the marks of the root.
    """
    key: Any = _ROOT
    for step in path:
        here = holder.setdefault(key, {})
        while here is not True and is_dynamic(value):
            # A path omits the wrapper of a dynamic value.
            if step == "type":
                here["type"] = True
            holder, key, value = here, "value", value["value"]
            here = holder.setdefault(key, {})
        if here is True or value is None:
            return
        if not _leads_on(value, step):
            break
        holder, key, value = here, step, value[step]
    holder[key] = True


def _leads_on(value: Any, step: Step) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def below(marks: Marks, key: str | int) -> Marks:
    """Return the marks of the member with this key."""
    found: Marks = True if marks is True else marks.get(key, _NOTHING)
    return found


def marked_values(
    value: Any, marks: Marks, path: tuple[Step, ...] = ()
) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield each marked value as a whole, with its path."""
    if marks is True:
        yield path, value
        return
    for key, inner in marks.items():
        # A path omits the wrapper of a dynamic value.
        is_wrapper = key == "value" and is_dynamic(value)
        yield from marked_values(value[key], inner, path if is_wrapper else (*path, key))
