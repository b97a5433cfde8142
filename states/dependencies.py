"""Dependencies of a state in both directions, limited to the states within a binding."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Q

from states.models import State, StateDependency

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apikeys.bindings import Binding

#: The two directions, in the order of the list.
READS: Final = "reads"
READ_BY: Final = "read_by"
_FIRST: Final = uuid.UUID(int=0)


class Dependency(NamedTuple):
    """A data source that reads a state, and the state at the other end of the dependency.

    ``state`` is None if this service does not store the state, or if the state is outside the
    binding.
    """

    found: StateDependency
    state: Any


class Dependencies(NamedTuple):
    """A page of dependencies. ``position`` is the start of the next page, or None at the end."""

    reads: Sequence[Dependency]
    read_by: Sequence[Dependency]
    position: tuple[str, str] | None


def dependencies_of(
    state: State, binding: Binding, *, size: int, position: Sequence[Any] | None = None
) -> Dependencies:
    """Return up to ``size`` dependencies after the position.

    The states that the state reads precede the states that read it.
    """
    direction, after = (position[0], uuid.UUID(position[1])) if position else (READS, _FIRST)
    reads: list[StateDependency] = []
    if direction == READS:
        own = StateDependency.objects.filter(state_id=state.pk, pk__gt=after)
        reads = list(own.order_by("pk")[: size + 1])
        if len(reads) > size:
            reads = reads[:size]
            return Dependencies(_targets(reads, binding), [], (READS, str(reads[-1].pk)))
        after = _FIRST
    readers = StateDependency.objects.inside(binding).filter(
        target_component_id=state.component_id,
        target_environment_id=state.environment_id,
        pk__gt=after,
    )
    left = size - len(reads)
    read_by = list(readers.order_by("pk")[: left + 1])
    shown = read_by[:left]
    more = len(read_by) > left
    last = shown[-1].pk if shown else after
    return Dependencies(
        _targets(reads, binding), _readers(shown, binding), (READ_BY, str(last)) if more else None
    )


def _targets(found: Sequence[StateDependency], binding: Binding) -> list[Dependency]:
    keys = {
        (one.target_component_id, one.target_environment_id)
        for one in found
        if one.target_component_id is not None
    }
    condition = Q()
    for component_id, environment_id in keys:
        condition |= Q(component_id=component_id, environment_id=environment_id)
    states = _seen(condition, binding) if keys else []
    by_key: dict[Any, State] = {
        (state.component_id, state.environment_id): state for state in states
    }
    return [
        Dependency(one, by_key.get((one.target_component_id, one.target_environment_id)))
        for one in found
    ]


def _readers(found: Sequence[StateDependency], binding: Binding) -> list[Dependency]:
    ids = {one.state_id for one in found}
    by_id = {state.pk: state for state in (_seen(Q(pk__in=ids), binding) if ids else [])}
    # A state is missing if it was deleted or moved between the two queries.
    return [Dependency(one, by_id[one.state_id]) for one in found if one.state_id in by_id]


def _seen(condition: Q, binding: Binding) -> Iterable[State]:
    return State.objects.visible().inside(binding).with_names().filter(condition)
