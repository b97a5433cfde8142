"""What changed between two versions, as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec

from states.document import contents, format4
from states.document.effort import Effort
from states.document.hidden import encode
from states.errors import VersionNotFound
from states.keeping import reading
from states.models import StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apikeys.audit import Actor
    from states.models import State

#: Changes on a page.
CHANGES: Final = 50
#: Rows of all the changes on a page, and characters of a value: a page must not become as large as
#: a document.
MOST_ROWS: Final = 500
MOST_SHOWN: Final = 2_000
#: A value with more maps and lists in it is shown in one line.
_INDENTED: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A page of the changes; ``summary`` counts all of them, ``position`` those before the page."""

    before: StateVersion
    after: StateVersion
    terraform_versions: tuple[str | None, str]
    summary: Sequence[tuple[str, dict[str, int]]]
    changes: Sequence[dict[str, Any]]
    next_start: int | None
    hidden: bool


def compare(
    state: State, before: int, after: int, *, start: int, hide: bool, actor: Actor
) -> Comparison:
    """Read both documents, which the trail is told, and compare them.

    Raises:
        VersionNotFound: there is no such version, or it has been pruned.
        StateEncrypted, StateFormatUnsupported, DocumentDamaged, StorageUnavailable: see there.
    """
    rows = {
        v.number: v for v in StateVersion.objects.filter(state=state, number__in=(before, after))
    }
    if before not in rows or after not in rows:
        raise VersionNotFound
    old, new = (
        reading.read_version(
            state_id=state.pk, number=number, actor=actor, part="diff", secrets=not hide
        )
        for number in (before, after)
    )
    page = contents.diff(old, new, start=start, size=CHANGES, hide=hide)
    return Comparison(
        before=rows[before],
        after=rows[after],
        terraform_versions=page.versions,
        summary=[(kind, page.summary[kind]) for kind in ("resources", "outputs")],
        changes=[
            *_cut_down(chain(_shown(page.outputs, "output"), _shown(page.resources, "resource")))
        ],
        next_start=start + CHANGES if page.more else None,
        hidden=hide,
    )


def _cut_down(changes: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the changes with no more rows than a page shows; ``more_rows`` counts the others."""
    left = MOST_ROWS
    for change in changes:
        rows = change["rows"]
        yield {**change, "rows": rows[:left], "more_rows": max(0, len(rows) - left)}
        left = max(0, left - len(rows))


def _shown(changes: msgspec.Raw, kind: str) -> Iterable[dict[str, Any]]:
    for change in format4.decode(changes, Effort(len(changes))):
        attributes = [
            {
                "path": _cut(entry["path"]),
                "before": _text(entry, "before"),
                "after": _text(entry, "after"),
            }
            for entry in change["attributes"]
        ]
        facts = [
            {
                "path": entry["field"],
                "before": _json(entry["before"]),
                "after": _json(entry["after"]),
            }
            for entry in change["metadata"]
        ]
        yield {
            "kind": kind,
            "address": _cut(change["name"] if kind == "output" else change["address"]),
            "deposed": change.get("deposed"),
            "action": change["action"].lower(),
            "rows": [*attributes, *facts],
        }


def _text(entry: dict[str, Any], side: str) -> str:
    """Return a value as JSON; nothing where there is none on that side."""
    absent = "removed" if side == "after" else "added"
    return "" if entry["action"].lower() == absent else _json(entry[side])


def _json(value: Any) -> str:
    written = bytes(encode(value))
    # Indented, what is nested deeply would be a thousand times as long.
    if written.count(b"{") + written.count(b"[") <= _INDENTED:
        written = msgspec.json.format(written, indent=2)
    return _cut(written.decode())


def _cut(text: str) -> str:
    more = len(text) - MOST_SHOWN
    return text if more <= 0 else f"{text[:MOST_SHOWN]}… and {more} more characters"
