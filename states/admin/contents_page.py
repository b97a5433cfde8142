"""Contents of a version for an admin page: outputs, and resources with their attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from states.admin.values import cut, decoded, json_text, with_rows_cut
from states.document import contents
from states.keeping import reading
from states.models import VersionFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.actors import Actor
    from states.models import State

#: Maximum outputs per page, and maximum resources per page.
ITEMS: Final = 50


class Contents(NamedTuple):
    """A page of a version's contents. ``next_start`` is the start of the next page."""

    outputs: Sequence[dict[str, Any]]
    resources: Sequence[dict[str, Any]]
    start: int
    next_start: int | None
    hidden: bool
    #: The facts that a pipeline reported about the version; only on the first page.
    facts: VersionFacts | None


def read(state: State, number: int, *, start: int, hide: bool, actor: Actor) -> Contents:
    """Read a version's document, record the read in the audit log, and return a page of contents.

    Raises:
        VersionNotFound, StateEncrypted, StateFormatUnsupported, StateTooComplex,
            DocumentUnreadable, StorageUnavailable: see these classes.
    """
    gzipped = reading.read_version(
        state_id=state.pk, number=number, actor=actor, part="contents", secrets=not hide
    )
    outputs = contents.outputs(gzipped, start=start, size=ITEMS, hide=hide)
    resources = contents.resources(gzipped, start=start, size=ITEMS, hide=hide)
    more = outputs.more or resources.more
    return Contents(
        outputs=[
            {**output, "name": cut(output["name"]), "value": json_text(output["value"])}
            for output in decoded(outputs.items)
        ],
        resources=list(with_rows_cut(map(_shown, decoded(resources.items)))),
        start=start,
        next_start=start + ITEMS if more else None,
        hidden=hide,
        facts=None if start else _facts(state, number),
    )


def _facts(state: State, number: int) -> VersionFacts | None:
    return VersionFacts.objects.filter(version__state=state, version__number=number).first()


def _shown(resource: dict[str, Any]) -> dict[str, Any]:
    attributes = resource["attributes"]
    if not isinstance(attributes, dict):  # hidden as a whole, or missing
        attributes = {} if attributes is None else {"": attributes}
    rows = [{"path": cut(name), "value": json_text(value)} for name, value in attributes.items()]
    return {**resource, "address": cut(resource["address"]), "rows": rows}
