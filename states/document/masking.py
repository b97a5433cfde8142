"""Hide the values that a state marks as sensitive, and copies of these values in the same state.

Terraform marks a place, not a value. If ``terraform_data.x.input`` contains a password, it is
marked, but ``terraform_data.x.output`` with the same password is not. The marked values of the
whole state are therefore collected, and hidden wherever they occur. ``secret_rule`` decides which
marked values are secrets. The following are hidden:

- a marked place, with everything below it;
- a text or number that equals a secret, in any notation of the number;
- a text that contains a secret or the middle of a long secret, even escaped or encoded
  (``encodings``);
- a JSON text that contains a value that would be hidden;
- a map with a key that would be hidden;
- a list or map that equals a marked value, unless it contains only public vocabulary;
- within the object that contains the mark, any text or number that equals a value with its own mark
  or a secret name, even if it is short.

An invalid path hides everything below its last valid step.
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
    """Return the secrets among the values that the documents mark as sensitive."""
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
    """Return the values of an object with their hidden parts replaced.

    ``sides`` are values with their marks. A value that is marked on one side is also hidden on the
    other sides. A value with nothing to hide is returned itself, not as a copy.
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
    """Return whether equal values in the same object are hidden, even if the value is short."""
    has_own_evidence = scalar.evidence > Evidence.MEMBER
    return has_own_evidence and scalar.value != "" and not is_public(_as_text(scalar.value))


#: The cost in steps of normalizing a number with a fraction or an exponent.
_DECIMAL_COST: Final = 3


class _Mask:
    """A mask that replaces the hidden parts of the values of an object."""

    def __init__(self, secrets: Secrets, own: set[str], hidden: dict[str, Cause]) -> None:
        self._secrets, self._own, self._hidden = secrets, own, hidden

    def apply(self, value: Any, marks: Marks) -> tuple[Any, int]:
        """Return the value with its hidden parts replaced, and the digest of the original value."""
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
        """Return the cause for hiding a text, or a number as text, if any."""
        return self._hidden.get(text) or (_SAME_OBJECT if text in self._own else None)


#: The cause if the marked place is in the same object. The object's marks are listed separately.
_SAME_OBJECT: Final = Cause(HiddenReason.CONTAINS_SENSITIVE_VALUE)


class ShownOutput(NamedTuple):
    """The value and type of an output with hidden parts replaced, and the cause, if any."""

    value: Any
    type: Any
    hidden: Cause | None


def show_output(output: Output, secrets: Secrets | None, effort: Effort) -> ShownOutput:
    """Return an output with its hidden parts replaced."""
    value = format4.decode(output.value, effort)
    kind = format4.decode(output.type, effort)
    if secrets is None:
        return ShownOutput(value, kind, None)
    (shown,) = masked(secrets, (value, True if output.sensitive else {}))
    kind = MASK if shown is not value and not isinstance(kind, str) else kind
    return ShownOutput(shown, kind, None if shown is value else cause_of(shown, marked=True))


def cause_of(shown: Any, *, marked: bool) -> Cause | None:
    """Return the cause for the first hidden part of a value.

    With ``marked``, parts that are hidden by their own marks also count.
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
    """Add the texts in the value to ``texts``, including keys."""
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
