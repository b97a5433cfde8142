"""Finding states by the names of what they belong to, at a million states.

Names are looked up first, in the small tables and in the index on them; then the states, by the
ids, in theirs. A LIKE over the join would read every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils.text import smart_split, unescape_string_literal

from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.pages import read_page
from states.models.catalogue import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from states.models.catalogue_entry import CatalogueEntry

#: How many names of each kind a word may stand for; what begins with it beside these is not found.
MOST_NAMES: Final = 20
MOST_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for among the states; ``notes`` tell a person what is not looked for."""

    condition: Q
    notes: Sequence[str]


def search(text: str) -> Search:
    """Return what finds the states that each word leads to.

    A word is a piece of the name of an application, a component or an environment, in whatever
    case, or an id of one or of a state; one with spaces stands in quotes. Names that begin with it
    come first. Where a name is just the word, what else has it is not meant. A few queries a word.
    """
    condition, notes = Q(), []
    words = [word for part in smart_split(text) if (word := _unquoted(part))]
    if len(words) > MOST_WORDS:
        notes.append(f"Only the first {MOST_WORDS} words are looked for.")
    for word in words[:MOST_WORDS]:
        found = _meant({kind: _entries(model, word) for kind, model in KINDS.items()}, word)
        notes += [
            f"More than {MOST_NAMES} {kind}s have “{word}” in their names; the others are left out."
            for kind, entries in found.items()
            if len(entries) > MOST_NAMES
        ]
        condition &= _of(found) or _by_id(word)
    return Search(condition, notes)


def _unquoted(word: str) -> str:
    quoted = len(word) > 1 and word[0] in "'\"" and word[0] == word[-1]
    return unescape_string_literal(word) if quoted else word


def _entries(model: type[CatalogueEntry], word: str) -> list[CatalogueEntry]:
    """Return what the word may stand for, and one more when it is too much."""
    entry_id = parse_uuid(word)
    if entry_id is not None:
        return list(model.objects.filter(pk=entry_id).only("name"))
    found = list(model.objects.named(word).only("name")[: MOST_NAMES + 1])
    if len(found) > MOST_NAMES or any(entry.name == word for entry in found):
        return found
    # A bounded number of names is looked through for the piece.
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
    """Return the condition for the states of these entries; empty when there are none."""
    condition = Q()
    for kind, entries in meant.items():
        # An equality is what a page can be read by in an index.
        if len(entries) == 1:
            condition |= Q((kind, entries[0].pk))
        elif entries:
            condition |= Q((f"{kind}__in", [entry.pk for entry in entries[:MOST_NAMES]]))
    return condition


def _by_id(word: str) -> Q:
    """Return the condition for the state of this id; nothing when it is none."""
    state_id = parse_uuid(word)
    return Q(pk__in=[]) if state_id is None else Q(pk=state_id)
