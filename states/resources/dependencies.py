"""Index the dependencies of a state: the states that it reads with ``terraform_remote_state``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from infra_service.lib.api.identifiers import parse_uuid
from states import addresses
from states.models import State, StateDependency
from states.targets import StateTarget

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from states.resources.remote_states import RemoteState

#: Maximum rows per statement.
_ROWS: Final = 500


class _Row(NamedTuple):
    address: str
    backend: str
    location: str
    target_component_id: uuid.UUID | None
    target_environment_id: uuid.UUID | None


def write_dependencies(state: State, found: Sequence[RemoteState]) -> None:
    """Replace the dependencies of the state. Unchanged rows stay. Look up each address once."""
    targets = {one.named: _target(dict(one.named)) for one in found}
    rows = {
        _Row(one.address, one.backend, one.location, *targets[one.named]): None for one in found
    }
    own = StateDependency.objects.filter(state_id=state.pk)
    present = {_Row._make(columns): pk for pk, *columns in own.values_list("pk", *_Row._fields)}
    stale = [pk for row, pk in present.items() if row not in rows]
    for start in range(0, len(stale), _ROWS):
        StateDependency.objects.filter(pk__in=stale[start : start + _ROWS]).delete()
    StateDependency.objects.bulk_create(
        [
            StateDependency(state_id=state.pk, **StateTarget.of(state).ids, **row._asdict())
            for row in rows
            if row not in present
        ],
        batch_size=_ROWS,
    )


def _target(named: dict[str, str]) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """Return the ids of the component and environment at the address, or None for both."""
    place: tuple[uuid.UUID | None, uuid.UUID | None] | None = (None, None)
    if "state_id" in named:
        state_id = parse_uuid(named["state_id"])
        states = State.objects.filter(pk=state_id) if state_id else State.objects.none()
        place = states.values_list("component_id", "environment_id").first()
    elif "component_id" in named:
        place = parse_uuid(named["component_id"]), parse_uuid(named["environment_id"])
    elif named:
        names = addresses.Names(**named)
        place = addresses.find_place(names)[:2] if names.is_valid else None
    return (None, None) if place is None or None in place else place
