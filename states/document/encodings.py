r"""Encodings in which a secret can appear in another text.

Texts are unescaped repeatedly until they no longer change: JSON (``\u0026``, ``\/``, ``\n``),
percent-encoding, and entities of HTML and XML. Repetition also unescapes JSON within JSON. For
other encodings (base64, hexadecimal digits, ``+`` for a space), the text is searched for the
encoded form of the secret.
"""

from __future__ import annotations

import base64
import contextlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.work_limit import Effort

#: Maximum bytes of a secret to search for, from its middle. A text with these bytes is hidden.
PART: Final = 96
#: Characters on both sides of this part that are unescaped with it.
_AROUND: Final = 1024
#: The minimum length of a secret to search for in other texts.
LEAST: Final = 6
#: The maximum depth of nested escapes.
_ROUNDS: Final = 8
_ESCAPED: Final = re.compile(rb"[\\%&]")
_UNICODE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
)
_CONTROLS: Final = (
    (b"\\n", b"\n"), (b"\\r", b"\r"), (b"\\t", b"\t"), (b"\\b", b"\b"), (b"\\f", b"\f"),
)  # fmt: skip
_ENTITIES: Final = (
    (b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&#34;", b'"'), (b"&#x22;", b'"'),
    (b"&apos;", b"'"), (b"&#39;", b"'"), (b"&#x27;", b"'"), (b"&#38;", b"&"), (b"&amp;", b"&"),
)  # fmt: skip
#: Bytes that do not occur in UTF-8: a mark of a backslash, and a separator between texts.
_BACKSLASH: Final = b"\xfe"
BETWEEN: Final = b"\xff"
#: Percent-encoding can contain these bytes.
_WITHOUT_MARKS: Final = bytes.maketrans(_BACKSLASH + BETWEEN, b"??")


class NestingTooDeepError(Exception):
    """A text contains escapes that are nested too deeply."""


def is_escaped(text: bytes) -> bool:
    """Return whether the text may contain escapes."""
    return _ESCAPED.search(text) is not None


def unescaped(text: bytes, effort: Effort) -> bytes:
    """Return a text in UTF-8 without escapes.

    Raises:
        NestingTooDeepError: the escapes are nested too deeply.
        StateTooComplex: unescaping exceeds the work limit.
    """
    for _ in range(_ROUNDS):
        effort.spend(1 + len(text) // 1000)
        before = text
        if b"\\" in text:
            text = _without_backslashes(text, effort)
        if b"%" in text:
            effort.spend(text.count(b"%") // 2)
            text = unquote_to_bytes(text).translate(_WITHOUT_MARKS)
        if b"&" in text and b";" in text:
            for entity, character in _ENTITIES:
                text = text.replace(entity, character)
        if text == before:
            return text
    raise NestingTooDeepError


def _without_backslashes(text: bytes, effort: Effort) -> bytes:
    """Remove a level of JSON escapes, and all other backslashes before characters."""
    text = text.replace(b"\\\\", _BACKSLASH)
    for escape, character in _CONTROLS:
        text = text.replace(escape, character)
    if b"\\u" in text:
        effort.spend(text.count(b"\\u"))
        text = _UNICODE.sub(_character, text)
    return text.replace(b"\\", b"").replace(_BACKSLASH, b"\\")


def _character(escape: re.Match[bytes]) -> bytes:
    units = escape[0].decode("raw_unicode_escape").encode("utf-16", "surrogatepass")
    return units.decode("utf-16", "replace").encode()


def search_patterns(secret: str, effort: Effort) -> set[bytes]:
    """Return the search patterns of a secret: its middle, in each encoding."""
    start = max(0, (len(secret) - PART) // 2)
    plain = {secret[start : start + PART].encode()}
    # Unescaped before the cut, which could divide an escape.
    around = secret[max(0, start - _AROUND) : start + PART + _AROUND].encode()
    if is_escaped(around):
        with contextlib.suppress(NestingTooDeepError):  # the escaped text is still searched
            text = unescaped(around, effort)
            start = max(0, (len(text) - PART) // 2)
            plain.add(text[start : start + PART])
    found = set(plain)
    for text in plain:
        if len(text) >= LEAST:
            found |= {text.replace(b" ", b"+"), text.hex().encode(), *_base64(text)}
    return {text for text in found if len(text) >= LEAST}


def _base64(text: bytes) -> Iterator[bytes]:
    """Yield the base64 of this text as part of a longer text, in both alphabets.

    Three bytes become four characters, so there are three alignments. Characters that also depend
    on adjacent bytes are omitted.
    """
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + text)
        first, last = -(-8 * before // 6), 8 * (before + len(text)) // 6
        yield encoded[first:last]
        yield encoded[first:last].translate(_URL_SAFE)


_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
