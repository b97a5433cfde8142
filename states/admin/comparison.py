"""Comparison of two versions of a state for an admin page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from states.admin.values import cut, decoded, json_text, with_rows_cut
from states.document import contents
from states.errors import VersionNotFound
from states.keeping import reading
from states.models import StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from msgspec import Raw

    from apikeys.actors import Actor
    from states.document.answers import ChangeCounts, MetadataChange
    from states.models import State

#: Maximum changes on a page.
CHANGES: Final = 50
_SIGNS: Final = {"added": "+", "changed": "~", "removed": "\u2212"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A page of the changes between two versions. ``summary`` counts the changes on all pages."""

    before: StateVersion
    after: StateVersion
    summary: Sequence[tuple[str, ChangeCounts]]
    metadata: Sequence[MetadataChange]
    changes: Sequence[dict[str, Any]]
    next_start: int | None
    hidden: bool


def compare(
    state: State, before: int, after: int, *, start: int, hide: bool, actor: Actor
) -> Comparison:
    """Read two documents, record the reads in the audit log, and compare the documents.

    Raises:
        VersionNotFound: a version does not exist, or was pruned. StateEncrypted,
        StateFormatUnsupported, DocumentDamaged, StorageUnavailable: see these classes.
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
        summary=[
            (label, getattr(page.summary, kind))
            for kind, label in (
                ("resources", "resources"),
                ("outputs", "outputs"),
                ("check_results", "results of checks"),
            )
        ],
        metadata=page.metadata,
        changes=[
            *with_rows_cut(
                chain(
                    _shown(page.outputs, "output"),
                    _shown(page.resources, "resource"),
                    map(_check, decoded(page.check_results)),
                )
            )
        ],
        next_start=start + CHANGES if page.more else None,
        hidden=hide,
    )


def _shown(changes: Raw, kind: str) -> Iterable[dict[str, Any]]:
    for change in decoded(changes):
        attributes = [
            {
                "path": cut(entry["path"]),
                "before": _text(entry, "before"),
                "after": _text(entry, "after"),
            }
            for entry in change["attributes"]
        ]
        facts = [
            {
                "path": entry["field"],
                "before": json_text(entry["before"]),
                "after": json_text(entry["after"]),
            }
            for entry in change["metadata"]
        ]
        yield {
            "kind": kind,
            "address": cut(change["name"] if kind == "output" else change["address"]),
            "deposed": change.get("deposed"),
            "action": change["action"].lower(),
            "sign": _SIGNS[change["action"].lower()],
            "rows": [*attributes, *facts],
        }


def _check(change: dict[str, Any]) -> dict[str, Any]:
    messages = change["failure_messages"]
    rows = [{"path": "status", "before": change["before"] or "", "after": change["after"] or ""}]
    if messages["before"] != messages["after"]:
        texts = {side: json_text(found) if found else "" for side, found in messages.items()}
        rows.append({"path": "failure_messages", **texts})
    return {
        "kind": "check",
        "address": cut(change["object"]),
        "action": change["action"].lower(),
        "sign": _SIGNS[change["action"].lower()],
        "rows": rows,
    }


def _text(entry: dict[str, Any], side: str) -> str:
    """Return a value as JSON, or an empty string if the value is missing on this side."""
    absent = "removed" if side == "after" else "added"
    return "" if entry["action"].lower() == absent else json_text(entry[side])
