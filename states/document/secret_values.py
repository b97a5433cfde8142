"""The marked values of a state that hide other values, each with its marked place.

The values are texts and numbers, the lines of texts, and the values in JSON texts. ``secret_rule``
decides which of them hide other values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from states.document import format4
from states.document.finding import Finder
from states.document.hidden import digest_of
from states.document.marked_places import Cause, HiddenReason
from states.document.numbers import number_text, text_as_number
from states.document.public_words import has_public_form, is_public
from states.document.secret_rule import (
    LEAST_EQUAL,
    MEASURED,
    Evidence,
    Reach,
    evidence,
    passwords_in,
    reach,
)
from states.document.sensitive_paths import is_dynamic
from states.document.value_names import Name, name_of_member, read_name
from states.errors import StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.marked_places import MarkedPlace
    from states.document.work_limit import Effort

_JSON: Final = re.compile(r"\s*+[\[{]")
_LINE: Final = re.compile(r"[^\r\n]{4,}")
#: A name and its value in a line of YAML, a properties file or shell variables.
_ASSIGNMENT: Final = re.compile(
    r"(?:- |export )?[\"']?([A-Za-z_][\w.-]{0,99})[\"']?(?:\s*=\s*|:\s+)(\S.*)", re.ASCII
)
#: The maximum depth of JSON within JSON that is searched.
_NESTED: Final = 3
#: The cost of the rule in steps, and the number of characters of a member per additional step.
RULE_COST: Final = 10
_CHARACTERS_A_STEP: Final = 5


class Scalar(NamedTuple):
    """A text, number, boolean or null in a marked value."""

    value: Any
    name: Name
    is_member: bool

    @property
    def evidence(self) -> Evidence:
        return evidence(self.name, is_member=self.is_member)


def scalars(whole: Scalar, effort: Effort) -> Iterator[Scalar]:
    """Yield the scalars in a marked value, which may be a container."""
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        effort.spend(1)
        value = part.value
        if is_dynamic(value):
            waiting.append(part._replace(value=value["value"]))
        elif isinstance(value, dict):
            waiting += (
                Scalar(member, name_of_member(key, part.name), is_member=True)
                for key, member in value.items()
            )
        elif isinstance(value, list):
            waiting += (Scalar(item, part.name, is_member=True) for item in value)
        else:
            yield part


class Secrets:
    """The values that hide equal values, or texts that contain them, anywhere in the state."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self._seen: set[int] = set()
        self._marked: dict[int, Cause] = {}
        self._texts: dict[int, Cause] = {}
        self._searched: set[int] = set()
        self._numbers: dict[str, Cause] = {}
        self._containers: dict[int, Cause] = {}
        self._finder = Finder(effort)

    def add(self, value: Any, place: MarkedPlace) -> None:
        """Collect the secrets of the value at a marked place."""
        cause = Cause(HiddenReason.CONTAINS_SENSITIVE_VALUE, place)
        is_notable = False
        for scalar in scalars(Scalar(value, place.name, is_member=False), self.effort):
            for text in _texts_of(scalar.value):
                self._add_text(text, scalar, cause)
                is_notable = is_notable or _is_notable(text)
        whole = value["value"] if is_dynamic(value) else value
        if is_notable and isinstance(whole, dict | list):
            self._containers.setdefault(digest_of(whole), cause)

    def _add_text(self, text: str, scalar: Scalar, cause: Cause, depth: int = 0) -> None:
        if not self._is_new(text, scalar, depth):
            return
        if not is_public(text):
            self._marked.setdefault(hash(text), cause)
        parts = self._within(text, depth)
        # In a marked list or map, only the values in a JSON text count, not the text itself.
        if not parts or scalar.evidence is not Evidence.MEMBER:
            self._hide(text, reach(text, scalar.name, is_member=scalar.is_member), cause)
        if "\n" in text or "\r" in text:
            for line in _LINE.finditer(text):
                self.effort.spend(1)
                self._add_line(line[0].strip(), scalar, cause)
        for part in parts:
            for inner in scalars(Scalar(part, scalar.name, is_member=True), self.effort):
                for inner_text in _texts_of(inner.value):
                    self._add_text(inner_text, inner, cause, depth + 1)

    def _add_line(self, line: str, scalar: Scalar, cause: Cause) -> None:
        """Collect a line of a text. In ``password: x``, the name classifies the value.

        A public name such as ``file`` describes the whole text, and not a line.
        """
        own_name: Name = Name.NEUTRAL if scalar.name is Name.PUBLIC else scalar.name
        parts = [(line, own_name)]
        if found := _ASSIGNMENT.fullmatch(line):
            parts = [(line, Name.NEUTRAL), (found[2].strip("\"',;"), read_name(found[1]))]
        for text, name in parts:
            if self._is_new(text, Scalar(text, name, is_member=True), depth=None):
                self._hide(text, reach(text, name, is_member=True, is_line=True), cause)

    def _is_new(self, text: str, scalar: Scalar, depth: int | None) -> bool:
        """Return whether a text is new at this depth of JSON, or as a line if the depth is None."""
        key = hash((text, scalar.name, scalar.is_member, depth))
        if len(text) < LEAST_EQUAL or key in self._seen:
            return False
        self._seen.add(key)
        self.effort.spend(RULE_COST)
        if scalar.evidence is Evidence.MEMBER and len(text) <= MEASURED:
            self.effort.spend(len(text) // _CHARACTERS_A_STEP)
        return True

    def _hide(self, text: str, reached: Reach, cause: Cause) -> None:
        if reached is Reach.NOTHING:
            return
        key = hash(text)
        self._texts.setdefault(key, cause)
        if reached is Reach.CONTAINING and key not in self._searched:
            self._searched.add(key)
            self._finder.add(text, cause)
        number = text_as_number(text)
        if number is not None and len(number) >= LEAST_EQUAL:
            self._numbers.setdefault(number, cause)

    def _within(self, text: str, depth: int) -> list[Any]:
        """Return a list with the value of a JSON object or array, or an empty list."""
        if depth == _NESTED or _JSON.match(text) is None:
            return []
        try:
            return [format4.decode(msgspec.Raw(text.encode()), self.effort)]
        except StateFormatUnsupported:
            return []

    def hides_number(self, text: str | None) -> Cause | None:
        """Return the cause for hiding a number in the form of ``number_text``, if any."""
        return None if text is None else self._numbers.get(text)

    def hides_container(self, digest: int) -> Cause | None:
        """Return the cause for hiding the container with this digest, if any."""
        return self._containers.get(digest)

    def hides(self, texts: list[str], depth: int = 0) -> dict[str, Cause]:
        """Return the texts that equal or contain a secret, each with the cause."""
        found = {texts[i]: cause for i, cause in self._finder.containing(texts).items()}
        self.effort.spend(len(texts) // 2)
        for text in texts:
            cause = (
                self._texts.get(hash(text))
                or self.hides_number(text_as_number(text))
                or self._hides_within(text, depth)
                or self._hides_password_of(text)
            )
            if cause is not None:
                found[text] = cause
        return found

    def _hides_password_of(self, text: str) -> Cause | None:
        """Return the cause for hiding a connection string with a marked password, if any."""
        is_candidate = len(text) <= MEASURED and ("://" in text or "=" in text)
        if not self._marked or not is_candidate:
            return None
        self.effort.spend(len(text) // _CHARACTERS_A_STEP)
        causes = (self._marked.get(hash(password)) for password in passwords_in(text))
        return next(filter(None, causes), None)

    def _hides_within(self, text: str, depth: int) -> Cause | None:
        """Return the cause for hiding a JSON text because of its values, if any.

        This also finds values that are too short for a text search.
        """
        texts: list[str] = []
        for part in self._within(text, depth):
            whole = Scalar(part, Name.NEUTRAL, is_member=True)
            for inner, _name, _is_member in scalars(whole, self.effort):
                if isinstance(inner, str):
                    texts.append(inner)
                elif not isinstance(inner, bool | None):
                    number = self.hides_number(number_text(inner))
                    if number is not None:
                        return number
        return next(iter(self.hides(texts, depth + 1).values()), None) if texts else None


def _texts_of(value: Any) -> set[str]:
    """Return the possible texts of a scalar."""
    if isinstance(value, str):
        return {value}
    return set() if isinstance(value, bool | None) else {number_text(value), str(value)}


def _is_notable(text: str) -> bool:
    """Return whether a container with this text is hidden: it is not empty and not public."""
    return text != "" and not is_public(text) and not has_public_form(text)
