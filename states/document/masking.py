"""Hide the values that a state marks as sensitive, and their copies elsewhere in it.

Terraform marks a place, not a value: ``terraform_data.x.input`` with a password in it is marked,
and ``terraform_data.x.output`` with the same password is not. The marked values are therefore
collected over the whole state, and hidden wherever they occur. ``secret_rule`` decides which of
them count. These are hidden:

- the marked place, and all under it;
- a text or number that equals a secret, in any notation of the number;
- a text that contains a secret, also escaped or encoded (``encodings``), or the middle of a long
  secret; a text of JSON in which something would be hidden;
- a map with such a text as a key;
- a list or map that equals a marked value, unless it contains only public vocabulary;
- within the object that has the mark, any text or number that equals a value with a mark or a
  secret name of its own, however short.

Unclear marks hide more, not less: a path that leads nowhere hides everything below its last valid
step.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from states.document.marked_places import MARKED, Cause, HiddenReason, MarkedPlace, name_of
from states.document.numbers import number_text
from states.document.public_words import is_public
from states.document.secret_rule import Evidence
from states.document.secret_values import Scalar, Secrets, scalars
from states.document.sensitive_paths import below, is_dynamic, marked_values, marks_of

if TYPE_CHECKING:
    from states.document.format4 import Document, Output
    from states.document.sensitive_paths import Marks
    from states.document.work_limit import Effort


def secrets_of(effort: Effort, *documents: Document) -> Secrets:
    """Return all values that the documents mark."""
    secrets = Secrets(effort)
    for document in documents:
        for name, output in (document.outputs or {}).items():
            if output.sensitive:
                secrets.add(format4.decode(output.value, effort), MarkedPlace(name))
        for resource, instance in document.instances():
            if instance.sensitive_attributes != format4.NO_PATHS:
                values = format4.decode(instance.values, effort)
                for path, value in marked_values(values, marks_of(instance, values, effort)):
                    secrets.add(value, MarkedPlace(instance=(resource, instance), path=path))
    return secrets


def masked(secrets: Secrets, *sides: tuple[Any, Marks]) -> list[Any]:
    """Return the values of an object, each with its marks, without hidden parts.

    A mark in either value hides the same place in the other. A value without hidden parts is
    returned itself, not as a copy.
    """
    own = {
        _as_text(scalar.value)
        for value, marks in sides
        for path, marked in marked_values(value, marks)
        for scalar in scalars(Scalar(marked, name_of(path), is_member=False), secrets.effort)
        if _hides_in_its_object(scalar)
    }
    texts: set[str] = set()
    for value, _ in sides:
        _collect_texts(value, texts, secrets.effort)
    mask = _Mask(secrets, own, secrets.hides(list(texts)))
    return [mask.apply(value, marks)[0] for value, marks in sides]


def _hides_in_its_object(scalar: Scalar) -> bool:
    """Return whether equal values of its object are hidden, however short the value is."""
    value = scalar.value
    is_scalar = value != "" and not isinstance(value, bool | None)
    return is_scalar and scalar.evidence > Evidence.MEMBER and not is_public(_as_text(value))


#: The cost of normalizing a number with a fraction or an exponent, in steps.
_DECIMAL_COST: Final = 3


class _Mask:
    """The mask over the values of an object."""

    def __init__(self, secrets: Secrets, own: set[str], hidden: dict[str, Cause]) -> None:
        self._secrets, self._own, self._hidden = secrets, own, hidden

    def apply(self, value: Any, marks: Marks) -> tuple[Any, int]:
        """Return the value without hidden parts, and the digest of the whole value."""
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
        cause = self._cause_of(value) if isinstance(value, str) else None
        return (value if cause is None else Hidden(digest, cause)), digest

    def _apply_to_number(self, value: int | decimal.Decimal) -> tuple[Any, int]:
        if isinstance(value, decimal.Decimal):
            self._secrets.effort.spend(_DECIMAL_COST)
        text = number_text(value)
        digest = digest_of_number(text)
        cause = self._secrets.hides_number(text) or self._cause_of(text)
        return (value if cause is None else Hidden(digest, cause)), digest

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
        cause = self._secrets.hides_container(digest)
        return (shown if cause is None else Hidden(digest, cause)), digest

    def _apply_to_map(self, value: dict[str, Any], marks: Marks) -> tuple[Any, int]:
        digest = EMPTY_MAP
        changed = {}
        for key, inner in value.items():
            new, part = self.apply(inner, below(marks, key))
            digest = with_member(digest, key, part)
            if new is not inner:
                changed[key] = new
        cause = self._secrets.hides_container(digest)
        if cause is None and self._hidden:
            cause = next((self._hidden[key] for key in value if key in self._hidden), None)
        if cause is not None:
            return Hidden(digest, cause), digest
        if "value" in changed and is_dynamic(value):
            kind = value["type"]
            changed["type"] = Hidden(digest_of(kind)) if isinstance(kind, list) else kind
        return ({**value, **changed} if changed else value), digest

    def _cause_of(self, text: str) -> Cause | None:
        """Return why a text, or a number as a text, is hidden."""
        return self._hidden.get(text) or (_SAME_OBJECT if text in self._own else None)


#: The marked place is in the object itself, whose marks are listed.
_SAME_OBJECT: Final = Cause(HiddenReason.CONTAINS_SENSITIVE_VALUE)


class ShownOutput(NamedTuple):
    """An output's value and type without hidden parts, and the cause if a part is hidden."""

    value: Any
    type: Any
    hidden: Cause | None


def show_output(output: Output, secrets: Secrets | None, effort: Effort) -> ShownOutput:
    """Return an output for display."""
    value = format4.decode(output.value, effort)
    kind = format4.decode(output.type, effort)
    if secrets is None:
        return ShownOutput(value, kind, None)
    (shown,) = masked(secrets, (value, True if output.sensitive else {}))
    kind = MASK if shown is not value and not isinstance(kind, str) else kind
    return ShownOutput(shown, kind, None if shown is value else cause_of(shown, marked=True))


def cause_of(shown: Any, *, marked: bool) -> Cause | None:
    """Return the reason why the first hidden part of a value is hidden.

    ``marked`` counts the parts that are marked themselves too.
    """
    waiting = [shown]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Hidden):
            if part.cause or marked:
                cause: Cause = part.cause or MARKED
                return cause
        elif isinstance(part, dict):
            waiting += reversed(part.values())
        elif isinstance(part, list):
            waiting += reversed(part)
    return None


def _collect_texts(value: Any, texts: set[str], effort: Effort) -> None:
    """Add each text in the value, including keys."""
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
    return value if isinstance(value, str) else number_text(value)
