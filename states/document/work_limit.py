"""Limits on the work for a document, in proportion to its size.

A hostile document can be expensive: it can contain millions of empty objects, a secret of one
megabyte, or extremely long numbers. Code that reads a document counts steps of about a microsecond.
It also estimates the memory of JSON before decoding it, because Python objects can need eighty
times as much memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra_service.lib.api import memory
from states.errors import StateTooComplex

if TYPE_CHECKING:
    from msgspec import Raw

_LEAST_STEPS: Final = 50_000
# Ordinary states need a step per 45 to 160 bytes.
_BYTES_A_STEP: Final = 16
#: Bytes of memory per byte of the document, for values decoded at the same time.
_FACTOR: Final = 4
_LEAST_BYTES: Final = 6 * 1024 * 1024
# Maximum bytes of a decoded dict, a list, a Decimal with its slot in a container, and a struct.
_OBJECT: Final = 240
_ARRAY: Final = 80
_ITEM: Final = 110
_STRUCT: Final = 200
#: Bytes per character of a text with a character above U+FFFF.
_WIDE: Final = 4
#: Decoded bytes per step. The decoder creates about 110 bytes in 70 ns.
_DECODED_A_STEP: Final = 1500
#: The length up to which the memory of JSON is not estimated.
_SHORT: Final = 2048


class Effort:
    """The remaining work that a request can spend on documents, in proportion to their size."""

    def __init__(self, size_bytes: int) -> None:
        self._steps = _LEAST_STEPS + size_bytes // _BYTES_A_STEP
        self._most_bytes = _LEAST_BYTES + _FACTOR * size_bytes
        self._heaviest = 0

    def spend(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            StateTooComplex: the steps exceed the limit.
        """
        self._steps -= steps
        if self._steps < 0:
            raise StateTooComplex

    def admit(self, raw: Raw | bytes) -> None:
        """Count the work and reserve the memory for JSON that will be decoded.

        Raises:
            StateTooComplex: the JSON has so many small values that it would need too much memory.
        """
        length = len(memoryview(raw))
        if length <= _SHORT:
            self.spend(1)
            return
        text = bytes(raw)
        weight = length * (1 if text.isascii() and b"\\u" not in text else _WIDE)
        weight += _OBJECT * _count(text, b"{") + _ARRAY * text.count(b"[")
        weight += _ITEM * _count(text, b",")
        self.spend(1 + weight // _DECODED_A_STEP)
        self._demand(weight)
        if weight > self._heaviest:  # for two values, or a value and its copy
            memory.reserve(2 * (weight - self._heaviest))
            self._heaviest = weight

    def admit_document(self, document: bytes) -> None:
        """Reserve the memory for a document without its attributes and values.

        Raises:
            StateTooComplex: the document has too many objects for its size.
        """
        weight = _STRUCT * _count(document, b"{")
        self._demand(weight)
        memory.reserve(weight)

    def _demand(self, weight: int) -> None:
        if weight > self._most_bytes:
            raise StateTooComplex


def _count(text: bytes, character: bytes) -> int:
    """Count the occurrences of a character, except in JSON within texts."""
    return text.count(character) - text.count(character + b"\\")
