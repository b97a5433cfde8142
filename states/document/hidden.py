"""Placeholders for hidden values, and digests for comparing values.

The digest of a container is computed from the digests of its parts, so each part is processed once.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from states.document.numbers import number_text

#: The placeholder in responses, as in Terraform's own output.
MASK: Final = "(sensitive value)"

# Hashes of tuples, which differ from the digests of texts.
EMPTY_MAP: Final = hash(("map",))
EMPTY_LIST: Final = hash(("list",))


class Hidden:
    """A placeholder for a hidden value. Placeholders for equal values are equal.

    ``cause`` is a ``marked_places.Cause``, or None if the value itself is marked.
    """

    __slots__ = ("cause", "digest")

    def __init__(self, digest: int, cause: Any = None) -> None:
        self.digest, self.cause = digest, cause

    def __eq__(self, other: object) -> bool:
        return digest_of(other) == self.digest

    __hash__ = None  # type: ignore[assignment]


def digest_of(value: Any) -> int:
    """Return a digest, which is the same for equal values, in linear time."""
    if isinstance(value, str):
        return hash(value)
    if isinstance(value, dict):
        digest = EMPTY_MAP
        for key, inner in value.items():
            digest = with_member(digest, key, digest_of(inner))
        return digest
    if isinstance(value, list):
        digest = EMPTY_LIST
        for inner in value:
            digest = with_item(digest, digest_of(inner))
        return digest
    if isinstance(value, Hidden):
        return value.digest
    if value is None or isinstance(value, bool):
        return hash(("constant", str(value)))
    return digest_of_number(number_text(value))


def digest_of_number(text: str) -> int:
    """Return the digest of a number with this text."""
    return hash(("number", text))


def with_member(digest: int, key: str, inner: int) -> int:
    """Return the digest of a map with another member. The order of members is irrelevant."""
    return digest ^ hash((key, inner))


def with_item(digest: int, inner: int) -> int:
    """Return the digest of a list with another item at the end."""
    return hash((digest, inner))


def _as_text(value: Any) -> str:
    if isinstance(value, Hidden):
        return MASK
    raise TypeError(type(value))


_encoder: Final = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_text)


def encode(value: Any) -> msgspec.Raw:
    """Return the JSON of a decoded value for a response, with placeholders for hidden values."""
    return msgspec.Raw(_encoder.encode(value))
