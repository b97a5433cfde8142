"""What a state marks sensitive, and where else the same values stand.

Terraform marks a place, not a value: ``terraform_data.x.input`` with a password in it is marked,
and ``terraform_data.x.output``, which holds the same password, is not. So the values of the marked
places are collected over the whole state, and hidden wherever they are met again:

- a container that equals a marked one;
- a text or number that equals a marked one of at least 4 characters (``5432`` is one);
- a text that contains a marked one of at least 6 characters (an address with a password in it);
- a map with such a text in one of its keys;
- within the object that has the mark, any equal text, number or boolean, however short.

What cannot be understood is hidden: a path that leads nowhere hides all from where it is lost.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, Final

import msgspec

from states import terraform
from states.marks import below, is_dynamic, marked_values, marks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.marks import Marks
    from states.terraform import Document, Output

#: What stands in the place of a hidden value, as in Terraform's own output.
MASK: Final = "(sensitive value)"

_LEAST_EQUAL: Final = 4
_LEAST_CONTAINED: Final = 6


class Secrets:
    """The values that are hidden wherever they stand."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._containers: set[bytes] = set()
        self._contained: list[str] | None = None
        self._beginnings: set[str] = set()
        self._longest = 0

    def add(self, value: Any) -> None:
        """Hide this value, and what it consists of."""
        for part in _parts(value):
            if isinstance(part, dict | list):
                self._containers.add(_canonical(part))
            elif not isinstance(part, bool):
                text = str(part)
                if len(text) >= _LEAST_EQUAL:
                    self._texts.add(text)
        self._contained = None

    def hides(self, value: Any) -> bool:
        """Whether this value, as a whole, is one of them or tells one of them."""
        if isinstance(value, str):
            return value in self._texts or self._is_told_by(value)
        if isinstance(value, dict):
            keys = any(self._is_told_by(key) for key in value)
            return keys or bool(
                value and self._containers and _canonical(value) in self._containers
            )
        if isinstance(value, list):
            return bool(value and self._containers and _canonical(value) in self._containers)
        return not isinstance(value, bool) and value is not None and str(value) in self._texts

    def _is_told_by(self, text: str) -> bool:
        """Whether one of the longer secrets stands within the text."""
        contained = self._sorted()
        for start in range(len(text) - _LEAST_CONTAINED + 1):
            if text[start : start + _LEAST_CONTAINED] in self._beginnings:
                rest = text[start : start + self._longest]
                # No secret here begins with another, so only the last one before can fit.
                position = bisect.bisect_right(contained, rest)
                if position and rest.startswith(contained[position - 1]):
                    return True
        return False

    def _sorted(self) -> list[str]:
        """Return the longer secrets in order, without those that begin with another."""
        if self._contained is None:
            kept: list[str] = []
            for text in sorted(t for t in self._texts if len(t) >= _LEAST_CONTAINED):
                if not kept or not text.startswith(kept[-1]):
                    kept.append(text)
            self._contained = kept
            self._beginnings = {text[:_LEAST_CONTAINED] for text in kept}
            self._longest = max(map(len, kept), default=0)
        return self._contained


def collect(secrets: Secrets, document: Document) -> None:
    """Add all that the document marks."""
    for output in (document.outputs or {}).values():
        if output.sensitive:
            secrets.add(terraform.decode(output.value))
    for _address, _resource, instance in document.instances():
        if instance.sensitive_attributes != terraform.NO_PATHS:
            values = terraform.decode(instance.values)
            for value in marked_values(values, marks_of(instance, values)):
                secrets.add(value)


class Mask:
    """Hides values of one object: an instance, or an output. Without ``secrets`` it hides none."""

    def __init__(self, secrets: Secrets | None, *own: Any) -> None:
        self.secrets = secrets
        self._own = {_as_text(p) for v in own for p in _parts(v) if not isinstance(p, dict | list)}

    def hides(self, value: Any, marks: Marks) -> bool:
        """Whether the value is hidden as a whole."""
        if self.secrets is None:
            return False
        if marks is True or self.secrets.hides(value):
            return True
        return not isinstance(value, dict | list | None) and _as_text(value) in self._own

    def apply(self, value: Any, marks: Marks) -> Any:
        """Return the value without what is hidden."""
        if self.hides(value, marks):
            return MASK
        if isinstance(value, dict):
            shown = {key: self.apply(inner, below(marks, key)) for key, inner in value.items()}
            if is_dynamic(value) and shown["value"] != value["value"]:
                shown["type"] = MASK if isinstance(value["type"], list) else value["type"]
            return shown
        if isinstance(value, list):
            return [self.apply(inner, below(marks, i)) for i, inner in enumerate(value)]
        return value


def mask_of_instance(secrets: Secrets | None, *sides: tuple[Any, Marks]) -> Mask:
    """Return the mask of an instance, from its decoded attributes and marks on each side."""
    if secrets is None:
        return Mask(None)
    return Mask(secrets, *(v for values, marks in sides for v in marked_values(values, marks)))


def show_output(output: Output, secrets: Secrets | None) -> tuple[Any, Any]:
    """Return an output's value and type, without what is hidden."""
    mask = Mask(secrets)
    value, kind = terraform.decode(output.value), terraform.decode(output.type)
    shown = mask.apply(value, True if output.sensitive else {})
    if mask.secrets is not None and shown != value and not isinstance(kind, str):
        kind = MASK
    return shown, kind


def _parts(value: Any) -> Iterator[Any]:
    """Yield the value and all within it, but not what is empty or null."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if part is None or part in ("", [], {}):
            continue
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_encoder: Final = msgspec.json.Encoder(decimal_format="number", order="sorted")


def _canonical(value: dict[str, Any] | list[Any]) -> bytes:
    return _encoder.encode(value)
