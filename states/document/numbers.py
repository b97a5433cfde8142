"""Normalized texts of numbers with all digits, so that equal numbers have equal texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import decimal

_NUMBER: Final = re.compile(
    r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?(?:[eE]([+-]?[0-9]{1,18}))?", re.ASCII
)
#: The maximum number of zeros that replace an exponent.
_ZEROS: Final = 40
_BITS: Final = 4096
_PLAIN: Final = 10**_ZEROS


def number_text(number: int | decimal.Decimal) -> str:
    """Return a number as text, without an exponent unless the text would be too long."""
    if isinstance(number, int):
        if -_PLAIN < number < _PLAIN:
            return str(number)
        if number.bit_length() > _BITS:
            return hex(number)  # decimal digits take quadratic time
    text = str(number)
    return text_as_number(text) or text


def text_as_number(text: str) -> str | None:
    """Return a text in the form of ``number_text``, or None if the text is not a number."""
    if text[:1] not in _FIRST or not text:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or not text.strip("+-.eE"):
        return None
    sign, whole, fraction, exponent = found.groups("")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "0"
    power = int(exponent or 0) - len(fraction) + len(digits) - len(kept)
    minus = "-" if sign == "-" else ""
    if 0 <= power <= _ZEROS:
        return f"{minus}{kept}{'0' * power}"
    if -_ZEROS <= power < 0:
        padded = kept.rjust(1 - power, "0")
        return f"{minus}{padded[:power]}.{padded[power:]}"
    return f"{minus}{kept}e{power}"


_FIRST: Final = frozenset("0123456789.+-")
