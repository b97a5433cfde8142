"""A scanner for this service's tokens in other text.

A checksum confirms each match. A random text in the format of a token passes with a probability of
one in 4 billion. The scanner finds plain tokens, tokens with characters escaped as in JSON (once or
in JSON within JSON), and tokens in base64 at any offset. It does not find tokens in encrypted,
compressed or wrapped text.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from apikeys.tokens import LENGTH, TokenKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The maximum number of distinct tokens in a text. Only a contrived text contains more.
MOST: Final = 1_000

_PREFIXES: Final = [kind.value.encode() for kind in TokenKind]
# Matches only the prefix, so that a false match cannot hide a real token that starts within it.
_START: Final = re.compile(
    rb"(?:%b)(?=[0-9A-Za-z]{%d})" % (b"|".join(_PREFIXES), LENGTH - len(_PREFIXES[0]))
)
# An escaped character of a token. A match starts only at the first backslash of a run, and does not
# backtrack. Otherwise, a megabyte of backslashes would take hours.
_ESCAPED: Final = re.compile(
    rb"(?<!\\)\\++u00(3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
)
_MAY_BE_ESCAPED: Final = re.compile(rb"\\u00[3-7]")


def find_tokens(text: bytes) -> list[str]:
    """Return the distinct tokens in a text, at most ``MOST``, in linear time."""
    if _MAY_BE_ESCAPED.search(text):
        text = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), text)
    found: dict[str, None] = {}
    for candidate in chain(_written(text), _encoded(text)):
        try:
            token = candidate.decode("ascii")
        except UnicodeDecodeError:
            continue
        if kind_of(token) is not None:
            found[token] = None
            if len(found) == MOST:
                break
    return list(found)


def _written(text: bytes) -> Iterator[bytes]:
    for match in _START.finditer(text):
        yield text[match.start() : match.start() + LENGTH]


def _encodings() -> dict[bytes, tuple[int, int]]:
    """Return the base64 form of each prefix for each offset in a group of three bytes.

    A form contains only the characters that depend on the prefix alone. The form maps to the number
    of bytes before the prefix in its group, and to the index of its first character in the group.
    """
    found = {}
    for prefix in _PREFIXES:
        for before in range(3):
            first, last = -(-before * 8 // 6), (before + len(prefix)) * 8 // 6
            encoded = base64.b64encode(bytes(before) + prefix + bytes(3))
            found[encoded[first:last]] = before, first
    return found


_ENCODINGS: Final[Mapping[bytes, tuple[int, int]]] = _encodings()
_ENCODED_START: Final = re.compile(b"|".join(_ENCODINGS))
#: The maximum number of places to decode. Random text has about one place per megabyte.
_MOST_PLACES: Final = 100_000
#: The number of characters of the whole base64 groups that contain a token.
_GROUPS: Final = 60
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def _encoded(text: bytes) -> Iterator[bytes]:
    for match in islice(_ENCODED_START.finditer(text), _MOST_PLACES):
        before, first = _ENCODINGS[match[0]]
        start = match.start() - first
        if start < 0:
            continue
        # Only the last character before the token in its group contains bits of the token.
        foreign = max(first - 1, 0)
        end = start - (-(before + LENGTH) * 8 // 6)
        group = b"A" * foreign + text[start + foreign : end]
        with contextlib.suppress(binascii.Error):
            whole = group.translate(_STANDARD).ljust(_GROUPS, b"A")
            yield base64.b64decode(whole, validate=True)[before : before + LENGTH]
