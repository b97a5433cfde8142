"""Find the texts that contain any of many patterns, in linear time.

Each pattern is indexed by words of 4 or 8 bytes from its middle. Compiled code looks up the machine
words of a text, from every second byte, in this index. The whole pattern is compared only after a
match.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from itertools import accumulate, compress, count
from typing import TYPE_CHECKING, Final

from states.document.encodings import (
    BETWEEN,
    LEAST,
    NestingTooDeepError,
    is_escaped,
    search_patterns,
    unescaped,
)
from states.document.marked_places import ESCAPED, Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from states.document.work_limit import Effort

#: Bytes to search at a time. Longer texts are split, with overlaps as long as a pattern that is
#: escaped three times.
_BATCH: Final = 64 * 1024
_OVERLAP: Final = 8 * 1024
_BYTES_A_STEP: Final = 20

#: The bytes to search, and the cause for hiding a text that contains them.
Pattern = tuple[bytes, Cause]


class _Index:
    """Patterns by words of a fixed size. ``least`` is the minimum length of a pattern."""

    def __init__(self, code: str, size: int) -> None:
        self._code, self._size, self.least = code, size, size + 1
        self.words: dict[int, Pattern | list[Pattern]] = {}

    def add(self, filed_pattern: Pattern) -> None:
        """Index the pattern by two words, so that one of them starts at an even byte of a text."""
        pattern = filed_pattern[0]
        middle = self._middle(pattern)
        for offset in (middle, middle + 1):
            word = int.from_bytes(pattern[offset : offset + self._size], sys.byteorder)
            filed = self.words.setdefault(word, filed_pattern)
            if isinstance(filed, list):
                filed.append(filed_pattern)
            elif filed is not filed_pattern:
                self.words[word] = [filed, filed_pattern]

    def candidates(self, text: bytes) -> Iterator[tuple[int, list[Pattern]]]:
        """Yield the positions of indexed words in the text, with the patterns of these words."""
        if not self.words:
            return
        for phase in range(0, self._size, 2):
            whole = (len(text) - phase) // self._size * self._size
            view = memoryview(text)[phase : phase + whole].cast(self._code)  # type: ignore[call-overload]
            for i in compress(count(), map(self.words.__contains__, view)):
                filed = self.words[view[i]]
                yield phase + i * self._size, filed if isinstance(filed, list) else [filed]

    def matches_at(self, text: bytes, place: int, pattern: bytes) -> bool:
        """Return whether the text contains the pattern with one of its words at this position."""
        start = place - self._middle(pattern)
        # A negative start counts from the end of the text, where the pattern does not fit.
        return text.startswith(pattern, start) or text.startswith(pattern, start - 1)

    def _middle(self, pattern: bytes) -> int:
        return (len(pattern) - self.least) // 2


class Finder:
    """A search for secrets in texts, in all encodings."""

    #: The cost of a secret in steps. A secret takes about 20 µs, and 1.5 kB for its words.
    COST: Final = 35

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._short, self._long = _Index("I", 4), _Index("Q", 8)

    def add(self, secret: str, cause: Cause) -> None:
        """Add a secret to the search, if it is long enough."""
        if len(secret[:LEAST].encode()) < LEAST:
            return
        self._effort.spend(self.COST)
        for pattern in search_patterns(secret, self._effort):
            index = self._long if len(pattern) >= self._long.least else self._short
            index.add((pattern, cause))

    def containing(self, texts: Sequence[str]) -> dict[int, Cause]:
        """Return the positions of texts that contain a secret, or too deeply nested escapes."""
        found: dict[int, Cause] = {}
        if not (self._short.words or self._long.words):
            return found
        batch = _Batch()
        for position, text in enumerate(texts):
            for start in range(0, len(text), _BATCH):
                if position in found:
                    break
                part = text[start : start + _BATCH + _OVERLAP].encode()
                batch.positions.append(position)
                batch.parts.append(part)
                batch.size += len(part)
                if batch.size >= _BATCH:
                    self._search(batch, found)
                    batch = _Batch()
        self._search(batch, found)
        return found

    def _search(self, batch: _Batch, found: dict[int, Cause]) -> None:
        text = BETWEEN.join(batch.parts)
        self._search_text(text, batch, found)
        if not is_escaped(text):
            return
        plain = _Batch()
        for position, part in zip(batch.positions, batch.parts, strict=True):
            if is_escaped(part) and position not in found:
                try:
                    plain.parts.append(unescaped(part, self._effort))
                    plain.positions.append(position)
                except NestingTooDeepError:
                    found[position] = ESCAPED
        self._search_text(BETWEEN.join(plain.parts), plain, found)

    def _search_text(self, text: bytes, batch: _Batch, found: dict[int, Cause]) -> None:
        self._effort.spend(len(batch.parts) // 2 + len(text) // _BYTES_A_STEP)
        starts: list[int] = []
        for index in (self._short, self._long):
            for place, patterns in index.candidates(text):
                starts = starts or [0, *accumulate(len(part) + 1 for part in batch.parts)]
                self._effort.spend(1 + len(patterns) // 2)
                position = batch.positions[bisect_right(starts, place) - 1]
                if position in found:
                    continue
                causes = (why for part, why in patterns if index.matches_at(text, place, part))
                cause = next(causes, None)
                if cause is not None:
                    found[position] = cause
                    if len(batch.parts) == 1:
                        return


class _Batch:
    """Texts that are searched together, and their positions among all texts."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.parts: list[bytes] = []
        self.size = 0
