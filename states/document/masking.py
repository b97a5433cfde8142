"""What a state marks sensitive, and where else the same values stand.

Terraform marks a place, not a value: ``terraform_data.x.input`` with a password in it is marked,
and ``terraform_data.x.output``, which holds the same password, is not. So the values of the marked
places are collected over the whole state, and hidden wherever they are met again. A secret is a
marked text or number, each line of it, and what is in it if it is JSON. Hidden is

- a container that equals a marked one;
- a text or number that equals a secret of at least 4 characters, in any writing of the number;
- a text that contains a secret of at least 6 bytes, also escaped or encoded (``writings``), or the
  middle of a long one; a text of JSON in which something would be hidden;
- a map with such a text in one of its keys;
- within the object that has the mark, any equal text, number or boolean, however short.

What cannot be understood is hidden: a path that leads nowhere hides all from where it is lost.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, Final

from states.document import format4
from states.document.hidden import (
    EMPTY_LIST,
    EMPTY_MAP,
    MASK,
    Hidden,
    digest_of,
    digest_of_number,
    with_item,
    with_member,
)
from states.document.numbers import number_text
from states.document.secret_values import Secrets
from states.document.sensitive_paths import below, is_dynamic, marked_values, marks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.effort import Effort
    from states.document.format4 import Document, Output
    from states.document.sensitive_paths import Marks


def secrets_of(effort: Effort, *documents: Document) -> Secrets:
    """Return all that the documents mark."""
    secrets = Secrets(effort)
    for document in documents:
        for output in (document.outputs or {}).values():
            if output.sensitive:
                secrets.add(format4.decode(output.value, effort))
        for _resource, instance in document.instances():
            if instance.sensitive_attributes != format4.NO_PATHS:
                values = format4.decode(instance.values, effort)
                for value in marked_values(values, marks_of(instance, values, effort)):
                    secrets.add(value)
    return secrets


def masked(secrets: Secrets, *sides: tuple[Any, Marks]) -> list[Any]:
    """Return the values of one object, each with its marks, without what is hidden.

    What the one marks is hidden in the other too. Where nothing is hidden, the value itself comes
    back and no copy of it.
    """
    own = {
        _as_text(part)
        for value, marks in sides
        for marked in marked_values(value, marks)
        for part in _scalars(marked)
    }
    texts: set[str] = set()
    for value, _ in sides:
        _collect_texts(value, texts, secrets.effort)
    mask = _Mask(secrets, own, secrets.telling(list(texts)))
    return [mask.apply(value, marks)[0] for value, marks in sides]


#: What it costs to write a number with a fraction or an exponent in the one way, in steps.
_DECIMAL_COST: Final = 3


class _Mask:
    """Hides values of one object."""

    def __init__(self, secrets: Secrets, own: set[str], telling: set[str]) -> None:
        self._secrets, self._own, self._telling = secrets, own, telling

    def apply(self, value: Any, marks: Marks) -> tuple[Any, int]:
        """Return the value without what is hidden, and the digest of all of it."""
        if marks is True:
            digest = digest_of(value)
            return Hidden(digest), digest
        if isinstance(value, dict):
            return self._apply_to_map(value, marks)
        if isinstance(value, list):
            return self._apply_to_list(value, marks)
        if isinstance(value, int | decimal.Decimal) and not isinstance(value, bool):
            return self._apply_to_number(value)
        digest = digest_of(value)
        return (Hidden(digest) if self._hides(value) else value), digest

    def _apply_to_number(self, value: int | decimal.Decimal) -> tuple[Any, int]:
        if isinstance(value, decimal.Decimal):
            self._secrets.effort.spend(_DECIMAL_COST)
        text = number_text(value)
        digest = digest_of_number(text)
        hides = self._secrets.is_number(text) or text in self._own
        return (Hidden(digest) if hides else value), digest

    def _apply_to_list(self, value: list[Any], marks: Marks) -> tuple[Any, int]:
        digest = EMPTY_LIST
        shown = value
        for i, inner in enumerate(value):
            new, part = self.apply(inner, below(marks, i))
            digest = with_item(digest, part)
            if new is not inner and shown is value:
                shown = value[:i]
            if shown is not value:
                shown.append(new)
        if value and self._secrets.is_container(digest):
            return Hidden(digest), digest
        return shown, digest

    def _apply_to_map(self, value: dict[str, Any], marks: Marks) -> tuple[Any, int]:
        digest = EMPTY_MAP
        changed = {}
        for key, inner in value.items():
            new, part = self.apply(inner, below(marks, key))
            digest = with_member(digest, key, part)
            if new is not inner:
                changed[key] = new
        is_secret = value and self._secrets.is_container(digest)
        if is_secret or not self._telling.isdisjoint(value):
            return Hidden(digest), digest
        if "value" in changed and is_dynamic(value):
            kind = value["type"]
            changed["type"] = Hidden(digest_of(kind)) if isinstance(kind, list) else kind
        return ({**value, **changed} if changed else value), digest

    def _hides(self, value: Any) -> bool:
        """Whether a text, a boolean or null is hidden."""
        if isinstance(value, str):
            return value in self._telling or value in self._own
        return value is not None and _as_text(value) in self._own


def show_output(output: Output, secrets: Secrets | None, effort: Effort) -> tuple[Any, Any]:
    """Return an output's value and type, without what is hidden."""
    value = format4.decode(output.value, effort)
    kind = format4.decode(output.type, effort)
    if secrets is None:
        return value, kind
    (shown,) = masked(secrets, (value, True if output.sensitive else {}))
    return shown, MASK if shown is not value and not isinstance(kind, str) else kind


def is_hidden(output: Output, secrets: Secrets, effort: Effort) -> bool:
    """Whether anything of an output is hidden."""
    value = format4.decode(output.value, effort)
    (shown,) = masked(secrets, (value, True if output.sensitive else {}))
    return shown is not value


def _scalars(value: Any) -> Iterator[Any]:
    """Yield the texts, numbers and booleans of a value, but no empty text."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        elif part is not None and part != "":
            yield part


def _collect_texts(value: Any, texts: set[str], effort: Effort) -> None:
    """Add each text that stands in the value, also as a key."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        effort.spend(1)
        if isinstance(part, str):
            texts.add(part)
        elif isinstance(part, dict):
            texts.update(part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else number_text(value)
