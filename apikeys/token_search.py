"""Tokens of ours in text that is not: a scanner for what others store.

Each has a checksum, so that what is found is a token: one random text of its form in 4,000 million
passes. Looked for are tokens as they are written, with characters escaped as JSON does it (once or
in JSON within JSON), and in base64, of which 42 characters have an own form wherever they begin.
What is encrypted, compressed, or wrapped into lines is not seen.
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

#: So many different tokens are looked for in one text; it was made for it to have more.
MOST: Final = 1_000

_PREFIXES: Final = [kind.value.encode() for kind in TokenKind]
# Consumes a prefix only, so that one that is part of what is no token hides none.
_START: Final = re.compile(
    rb"(?:%b)(?=[0-9A-Za-z]{%d})" % (b"|".join(_PREFIXES), LENGTH - len(_PREFIXES[0]))
)
# A character of a token, escaped; of backslashes in a row only the first begins a match, and none
# is given back, or a megabyte of them would take hours.
_ESCAPED: Final = re.compile(
    rb"(?<!\\)\\++u00(3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
)
_MAY_BE_ESCAPED: Final = re.compile(rb"\\u00[3-7]")


def find_tokens(text: bytes) -> list[str]:
    """Return the tokens in a text, each once, at most ``MOST``, in linear time."""
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
    """Return what each prefix is in base64, wherever it begins in a group of three bytes.

    It is cut to the characters in which nothing else has a part. With each: how many bytes of the
    group stand before the prefix, and which character of the group is the first.
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
#: So many places are decoded; by chance there is one in a text of a megabyte or more.
_MOST_PLACES: Final = 100_000
#: Characters of whole groups that hold a token and what stands before it.
_GROUPS: Final = 60
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def _encoded(text: bytes) -> Iterator[bytes]:
    for match in islice(_ENCODED_START.finditer(text), _MOST_PLACES):
        before, first = _ENCODINGS[match[0]]
        start = match.start() - first
        if start < 0:
            continue
        # Of what stands before the token in its group only the last character has bits of it.
        foreign = max(first - 1, 0)
        end = start - (-(before + LENGTH) * 8 // 6)
        group = b"A" * foreign + text[start + foreign : end]
        with contextlib.suppress(binascii.Error):
            whole = group.translate(_STANDARD).ljust(_GROUPS, b"A")
            yield base64.b64decode(whole, validate=True)[before : before + LENGTH]
