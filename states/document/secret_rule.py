"""The rule that decides which other values a marked value hides.

Terraform marks places, and a marked place is always hidden. The value of a marked place can also
hide the same value in other places, because Terraform does not mark every copy. Examples of copies
are connection strings and ``terraform_data.x.output``. However, not every marked value is a secret.
An output ``{host, port, region, user, password}`` is marked as a whole because of its password. If
the region were a secret, it would hide every ARN. The evidence that a value is a secret decides:

- *Public vocabulary* (``public_words``) hides nothing, even if it is marked, because it is easy to
  guess.
- *A secret name*: the value or its member is named ``password``, ``api_token`` or similar. A value
  with at least 4 characters hides equal texts. A value with at least 8 characters, or 7 if it mixes
  letters with digits or symbols, also hides texts that contain it.
- *Its own mark*: only this value is marked, and its name indicates nothing. A value with at least 4
  characters hides equal texts, and a value with at least 8 hides texts that contain it. A value
  with only digits hides equal values if it has at least 6 digits.
- *A member* of a list, a map, an object, JSON or a multi-line text that is marked as a whole, or a
  value with a public name such as ``host`` or ``vpc_id``. Such a value hides other texts only if it
  looks like a secret. It looks like a secret if it has at least 8 characters that alternate between
  letters, digits and symbols like a generated value, is a phrase of at least 20 characters, has
  more than 4096 characters, or is a connection string with a password. A line with spaces, symbols
  or both cases is not a phrase, because such lines are often ordinary text.

The password in a connection string (``://user:password@``, ``password=…``) is also compared with
all marked values except public vocabulary. If it equals one of them, the string is hidden.

A value hides texts that contain it only if it has at least 16 bits of entropy. The entropy is the
Shannon entropy per character, multiplied by the length. ``aaaaaaaa`` has no entropy, and a value
with 16 bits has at least 7 characters.
"""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from typing import Final
from urllib.parse import unquote

from states.document.public_words import has_public_form, is_public
from states.document.value_names import Name


class Reach(enum.Enum):
    """The other texts that a value hides: none, equal texts, or texts that contain the value."""

    NOTHING = enum.auto()
    EQUAL = enum.auto()
    CONTAINING = enum.auto()


class Evidence(enum.IntEnum):
    """Reasons to treat a value as a secret, from the weakest to the strongest."""

    MEMBER = enum.auto()
    MARKED = enum.auto()
    NAMED = enum.auto()


LEAST_EQUAL: Final = 4
_LEAST_DIGITS: Final = 6
_LEAST: Final = 8
_LEAST_UNIFORM: Final = 12
_LEAST_LONG: Final = 16
_LEAST_PHRASE: Final = 20
_LEAST_BITS: Final = 16
_PHRASE_BITS: Final = 45
_BITS_A_CHARACTER: Final = 3.0
#: The maximum average number of characters between changes of their kind in a generated text.
_CHARACTERS_A_CHANGE: Final = 5
_LEAST_CHANGES: Final = 3
#: The number of characters to measure for entropy. No public value is longer.
MEASURED: Final = 4096


def evidence(name: Name, *, is_member: bool) -> Evidence:
    """Return the reason to treat a value as a secret."""
    if name in {Name.SECRET, Name.SECRETS}:
        return Evidence.NAMED
    if is_member or name in {Name.PUBLIC, Name.IDENTIFIER}:
        return Evidence.MEMBER
    return Evidence.MARKED


def reach(text: str, name: Name, *, is_member: bool, is_line: bool = False) -> Reach:
    """Return which other texts a marked text hides."""
    if len(text) < LEAST_EQUAL or is_public(text):
        return Reach.NOTHING
    reason = evidence(name, is_member=is_member)
    if reason is Evidence.MEMBER and len(text) <= MEASURED and not _has_credentials(text):
        looks = _looks_generated(text, name) or (
            name is Name.NEUTRAL
            and (not is_line or _is_single_run(text))
            and _looks_like_phrase(text)
        )
        return Reach.CONTAINING if looks else Reach.NOTHING
    is_named = reason is Evidence.NAMED
    if text.isdigit() and not is_named:
        return Reach.EQUAL if len(text) >= _LEAST_DIGITS else Reach.NOTHING
    is_long = len(text) >= _LEAST or (is_named and _is_mixed(text))
    return Reach.CONTAINING if is_long and _bits(text) >= _LEAST_BITS else Reach.EQUAL


_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_TOKEN: Final = re.compile(r"\S{8,}")
_ODD: Final = re.compile(r"[^\sA-Za-z0-9\-_./:,=\x80-\U0010ffff]")
_RUN: Final = re.compile(r"[A-Za-z0-9]+")
#: A word, a word with a number, a number, a number with a unit, or words without spaces.
_WORD: Final = re.compile(
    r"[A-Z]?[a-z]*[0-9]{0,3}|[A-Z]+[0-9]{0,3}|[0-9]+|[0-9]{1,2}[a-z]+|v[0-9](?:alpha|beta)[0-9]"
    r"|[A-Z]*[a-z]*(?:[A-Z][a-z]{2,})*"
)
_CHANGE: Final = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_CREDENTIALS: Final = re.compile(
    r"://[^\s/:@]*:([^\s/@]+)@"
    r"|(?i:password|passwd|pwd|secret|token|accountkey|sharedaccesskey)\s*=\s*([^\s;&,]+)"
)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}", re.ASCII)


def _has_credentials(text: str) -> bool:
    """Return whether a text contains a named secret, like a connection string."""
    return _CREDENTIALS.search(text) is not None


def passwords_in(text: str) -> set[str]:
    """Return the passwords in a connection string, as written and percent-decoded."""
    found = {(match[1] or match[2]).strip("'\"") for match in _CREDENTIALS.finditer(text)}
    return found | {unquote(password) for password in found}


def _looks_generated(text: str, name: Name) -> bool:
    if _UUID.fullmatch(text):
        return name is not Name.IDENTIFIER
    is_email = _EMAIL.fullmatch(text) is not None
    return not is_email and any(_is_generated(token[0]) for token in _TOKEN.finditer(text))


def _is_generated(token: str) -> bool:
    """Return whether the kinds of characters change as often as in a generated token.

    The kinds are upper-case letters, lower-case letters, digits and symbols.
    """
    odd = len(_ODD.findall(token))
    runs = _RUN.findall(token)
    changes = odd + sum(len(_CHANGE.findall(run)) for run in runs if not _WORD.fullmatch(run))
    size = odd + sum(map(len, runs))
    if size < _LEAST:
        return False
    is_varied = changes >= _LEAST_CHANGES and changes * _CHARACTERS_A_CHANGE >= size
    if not is_varied:
        least = 1 if size >= _LEAST_LONG else 2
        is_long = changes >= least and max(map(len, runs)) >= _LEAST_UNIFORM
        if not is_long or _bits(token) < _BITS_A_CHARACTER * len(token):
            return False
    return not (is_public(token) or has_public_form(token))


def _looks_like_phrase(text: str) -> bool:
    is_candidate = len(text) >= _LEAST_PHRASE and "/" not in text and _EMAIL.fullmatch(text) is None
    return (
        is_candidate
        and not has_public_form(text)
        and not text.strip().isdigit()
        and _bits(text) >= _PHRASE_BITS
    )


def _is_single_run(text: str) -> bool:
    """Return whether a text has only letters of one case, and digits, such as a base32 key."""
    return text.isalnum() and (text.isupper() or text.islower())


def _is_mixed(text: str) -> bool:
    has_letter = any(character.isalpha() for character in text[:MEASURED])
    return has_letter and not text.isalpha()


def _bits(text: str) -> float:
    """Return the entropy of a text in bits."""
    measured = text[:MEASURED]
    size = len(measured)
    return sum(n * math.log2(size / n) for n in Counter(measured).values())
