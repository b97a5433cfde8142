"""Find the keys and tokens of this service in a document, with their addresses.

A ``terraform_remote_state`` with a ``password`` in its ``config`` writes the password into the
state. Outputs and environment variables of containers can also contain tokens.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rest_framework.exceptions import APIException

from apikeys.token_search import find_tokens
from states.document import format4
from states.document.concurrency import limited_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from states.document.contents import LoadedDocument
    from states.document.format4 import Document
    from states.document.work_limit import Effort

#: Maximum characters of an address; the rest is cut off.
MOST_CHARACTERS: Final = 500


class Leak(NamedTuple):
    """A token, and the address of the attribute or output that contains it.

    The address is empty for a token elsewhere, or if the document is unreadable.
    """

    token: str
    address: str


class Place(NamedTuple):
    """A name or position within an outer place. Millions of values can share an outer place."""

    outer: Place | None
    name: str | int


def find_leaks(loaded: LoadedDocument) -> list[Leak]:
    """Return the tokens in a document, each with the first address that contains it."""
    with limited_reading(loaded.gzipped) as effort:
        tokens = find_tokens(loaded.text)
        if not tokens:
            return []
        addresses: dict[str, str] = {}
        # The indexer reports errors about unreadable documents.
        with contextlib.suppress(APIException):
            for token, place in _places(loaded.parsed, effort):
                if token not in addresses:
                    addresses[token] = _address(place)
                if len(addresses) == len(tokens):
                    break
        return [Leak(token, addresses.get(token, "")) for token in tokens]


def _places(document: Document, effort: Effort) -> Iterator[tuple[str, Place]]:
    """Yield each token in a value, with its place."""
    for name, output in (document.outputs or {}).items():
        yield from _places_in(output.value, Place(Place(None, "output"), name), effort)
    for resource, instance in document.instances():
        for raw in (instance.values, instance.identity):
            yield from _places_in(raw, Place(None, resource.address(instance)), effort)


def _places_in(raw: Raw, place: Place, effort: Effort) -> Iterator[tuple[str, Place]]:
    if not find_tokens(bytes(raw)):
        return
    # A queue, because recursion would fail for deeply nested values.
    values: deque[tuple[Any, Place]] = deque([(format4.decode(raw, effort), place)])
    while values:
        value, at = values.popleft()
        if isinstance(value, str):
            yield from ((token, at) for token in _tokens_in(value))
        elif isinstance(value, list):
            values.extend((inner, Place(at, i)) for i, inner in enumerate(value))
        elif isinstance(value, dict):
            yield from ((token, at) for name in value for token in _tokens_in(name))
            values.extend((inner, Place(at, name)) for name, inner in value.items())


def _address(place: Place) -> str:
    """Return a place as an address of at most ``MOST_CHARACTERS``."""
    parts: list[str] = []
    here: Place | None = place
    while here is not None:
        within = "" if here.outer is None else "."
        parts.append(f"[{here.name}]" if isinstance(here.name, int) else within + _shown(here.name))
        here = here.outer
    return "".join(reversed(parts))[:MOST_CHARACTERS]


def _tokens_in(text: str) -> list[str]:
    return find_tokens(text.encode("utf-8", "replace"))


def _shown(name: str) -> str:
    """Return a part of an address for display. A key that contains a token is replaced."""
    if _tokens_in(name):
        return "…"
    return "".join(c if c.isprintable() else "?" for c in name[:MOST_CHARACTERS])
