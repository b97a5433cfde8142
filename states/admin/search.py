"""Search for states by the names of their catalogue entries.

The search first finds the entries by name in their small tables, and then the states by the ids of
the entries. A LIKE over the join would read every state. There may be a million states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils.text import smart_split, unescape_string_literal

from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.bounded_pages import read_page
from states.models.catalogue import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from states.models.catalogue_entry import CatalogueEntry

#: Maximum entries of each kind per word. The search ignores additional matches.
MOST_NAMES: Final = 20
MOST_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Search:
    """The condition of a search for states. ``notes`` report ignored words and omitted matches."""

    condition: Q
    notes: Sequence[str]


def search(text: str) -> Search:
    """Return the condition for the states that match all words.

    A word is a part of the name of an application, a component or an environment, in upper or lower
    case, or the id of an entry or a state. Quotes enclose words with spaces. Names that start with
    the word come first. A name equal to the word excludes longer names. Each word costs a few
    queries.
    """
    condition, notes = Q(), []
    words = [word for part in smart_split(text) if (word := _unquoted(part))]
    if len(words) > MOST_WORDS:
        notes.append(f"Only the first {MOST_WORDS} words are used.")
    for word in words[:MOST_WORDS]:
        found = _meant({kind: _entries(model, word) for kind, model in KINDS.items()}, word)
        notes += [
            f"More than {MOST_NAMES} {kind}s have “{word}” in their names. The list is "
            "incomplete; use a more specific word."
            for kind, entries in found.items()
            if len(entries) > MOST_NAMES
        ]
        condition &= _of(found) or _by_id(word)
    return Search(condition, notes)


def _unquoted(word: str) -> str:
    quoted = len(word) > 1 and word[0] in "'\"" and word[0] == word[-1]
    return unescape_string_literal(word) if quoted else word


def _entries(model: type[CatalogueEntry], word: str) -> list[CatalogueEntry]:
    """Return the entries that match the word, plus an extra entry if there are too many."""
    entry_id = parse_uuid(word)
    if entry_id is not None:
        return list(model.objects.filter(pk=entry_id).only("name"))
    found = list(model.objects.named(word).only("name")[: MOST_NAMES + 1])
    if len(found) > MOST_NAMES or any(entry.name == word for entry in found):
        return found
    # The search for a part of a name reads a bounded number of names.
    page = read_page(
        model.objects.filter(name__icontains=word).only("name"),
        key=("name", "id"),
        position=None,
        size=MOST_NAMES + 1,
    )
    return list({entry.pk: entry for entry in (*found, *page.rows)}.values())[: MOST_NAMES + 1]


def _meant(found: dict[str, list[CatalogueEntry]], word: str) -> dict[str, list[CatalogueEntry]]:
    exact = {kind: [e for e in entries if e.name == word] for kind, entries in found.items()}
    return exact if any(exact.values()) else found


def _of(meant: dict[str, list[CatalogueEntry]]) -> Q:
    """Return the condition for the states of these entries. It is empty without entries."""
    condition = Q()
    for kind, entries in meant.items():
        # Only an equality lets an index return the page in order.
        if len(entries) == 1:
            condition |= Q((kind, entries[0].pk))
        elif entries:
            condition |= Q((f"{kind}__in", [entry.pk for entry in entries[:MOST_NAMES]]))
    return condition


def _by_id(word: str) -> Q:
    """Return the condition for the state with this id. An invalid id matches no state."""
    state_id = parse_uuid(word)
    return Q(pk__in=[]) if state_id is None else Q(pk=state_id)
