"""The secrets of a state: which values are hidden wherever they stand.

A secret is a marked text or number, each line of it, and what is in it if it is JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from states.document import format4
from states.document.finding import Finder
from states.document.hidden import EMPTY_LIST, EMPTY_MAP, digest_of, with_item, with_member
from states.document.numbers import number_text, text_as_number
from states.errors import StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.effort import Effort

_LEAST_EQUAL: Final = 4
_JSON: Final = re.compile(r"\s*+[\[{]")
_LINE: Final = re.compile(r"[^\r\n]{4,}")
#: How numbers and JSON begin.
_SPECIAL: Final = frozenset("+-.0123456789[{ \t\r\n")
#: JSON within JSON within JSON is looked into, and no further.
_NESTED: Final = 3


class Secrets:
    """The values that are hidden wherever they stand."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self._texts: set[int] = set()
        self._numbers: set[str] = set()
        self._containers: set[int] = set()
        self._finder = Finder(effort)

    def add(self, value: Any) -> int:
        """Hide this value, and what it consists of; return its digest."""
        self.effort.spend(1)
        if isinstance(value, dict):
            digest = EMPTY_MAP
            for key, inner in value.items():
                digest = with_member(digest, key, self.add(inner))
        elif isinstance(value, list):
            digest = EMPTY_LIST
            for inner in value:
                digest = with_item(digest, self.add(inner))
        else:
            self._add_scalar(value)
            return digest_of(value)
        if value:
            self.effort.spend(1)
            self._containers.add(digest)
        return digest

    def _add_scalar(self, value: Any) -> None:
        if isinstance(value, str):
            self._add_text(value)
        elif value is not None and not isinstance(value, bool):
            for text in {number_text(value), str(value)}:
                self._add_text(text)

    def _add_text(self, text: str, depth: int = 0) -> None:
        if len(text) < _LEAST_EQUAL or hash(text) in self._texts:
            return
        self._texts.add(hash(text))
        self._finder.add(text)
        number = text_as_number(text)
        if number is not None and len(number) >= _LEAST_EQUAL:
            self._numbers.add(number)
        if "\n" in text or "\r" in text:
            for line in _LINE.finditer(text):
                self.effort.spend(1)
                self._add_text(line[0].strip(), depth)
        for part in self._within(text, depth):
            if isinstance(part, str):
                self._add_text(part, depth + 1)
            elif not isinstance(part, dict | list):
                self._add_scalar(part)

    def _within(self, text: str, depth: int) -> Iterator[Any]:
        """Yield what is in a text that is a JSON object or array; nothing of another text."""
        if depth == _NESTED or _JSON.match(text) is None:
            return
        try:
            waiting = [format4.decode(msgspec.Raw(text.encode()), self.effort)]
        except StateFormatUnsupported:
            return
        while waiting:
            part = waiting.pop()
            self.effort.spend(1)
            yield part
            if isinstance(part, dict):
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part

    def is_number(self, text: str | None) -> bool:
        """Whether the number equals one; ``text`` is how ``number_text`` writes it."""
        return text in self._numbers

    def is_container(self, digest: int) -> bool:
        """Whether the container with this digest equals one."""
        return digest in self._containers

    def telling(self, texts: list[str], depth: int = 0) -> set[str]:
        """Return those of the texts that equal a secret, or tell one."""
        found = {texts[position] for position in self._finder.telling(texts)}
        self.effort.spend(len(texts) // 2)
        for text in texts:
            if hash(text) in self._texts or (
                text[:1] in _SPECIAL
                and (self.is_number(text_as_number(text)) or self._tells_within(text, depth))
            ):
                found.add(text)
        return found

    def _tells_within(self, text: str, depth: int) -> bool:
        """Whether a text is JSON in which a value is hidden that is too short to be found in it."""
        if _JSON.match(text) is None:
            return False
        parts = list(self._within(text, depth))
        texts = [part for part in parts if isinstance(part, str)]
        numbers = (part for part in parts if not isinstance(part, str | dict | list | bool | None))
        return bool(texts and self.telling(texts, depth + 1)) or any(
            self.is_number(number_text(number)) for number in numbers
        )
