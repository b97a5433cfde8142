"""The state that a request or command addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from structlog.contextvars import bind_contextvars

from infra_service.lib.database.compiled import instance_of
from states.addresses import StateQuery
from states.errors import StateNotFound
from states.models import State

if TYPE_CHECKING:
    import uuid

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from infra_service.lib.database.compiled import Prefetch
    from states.addresses import Names
    from states.models import StateQuerySet


def _rows(states: StateQuerySet) -> QuerySet[State, Any]:
    return states.with_demand().values_list()


STATE: Final = StateQuery(_rows)


@dataclass(slots=True, kw_only=True)
class StateTarget:
    """The state of a component in an environment, which may not exist yet.

    With ``names``, missing entries are registered under these names and with the given ids.
    ``prefetched`` is the query for the state, which may already have run.
    """

    component_id: uuid.UUID
    environment_id: uuid.UUID
    names: Names | None = None
    prefetched: Prefetch[State] | None = None

    @classmethod
    def of(cls, state: State) -> StateTarget:
        """Return the target of an existing state."""
        return cls(component_id=state.component_id, environment_id=state.environment_id)

    @property
    def ids(self) -> dict[str, uuid.UUID]:
        """Return the ids of the component and the environment as parameters of a query."""
        return {"component_id": self.component_id, "environment_id": self.environment_id}

    def prefetch(self) -> Prefetch[State]:
        """Return the query for the state, which can run in one round trip with another query."""
        if self.prefetched is None:
            if self.names is None:
                self.prefetched = STATE.by_ids(**self.ids)
            else:
                self.prefetched = STATE.by_names(self.names)
        return self.prefetched

    def refresh(self, actor: Actor) -> Actor:
        """Load the actor and the state again in one query, and return the actor.

        Raises:
            CredentialsInvalid, TokenExpired, CallerChanged: see ``Actor.refresh``.
        """
        return actor.refresh(self.prefetch())

    def find(self, actor: Actor) -> State | None:
        """Return the state with its lock requirement, deleted or not.

        The function also adds the id of the state to later log events.

        Raises:
            StateNotFound: the state is outside the actor's binding. A move of the component can
                change the application of its states, and their revision, during a request.
        """
        row = self.prefetch().row()
        if row is None:
            return None
        state = instance_of(State, row[:-1])
        state.requires_lock = row[-1]
        bind_contextvars(state_id=str(state.pk))
        place = state.component_id, state.environment_id, state.application_id
        if not actor.grant.binding.allows_state(*place):
            raise StateNotFound
        return state

    def find_workspace(self, actor: Actor) -> State:
        """Return the state like ``find``, if it has a workspace.

        Raises:
            StateNotFound: the state is missing, has no workspace, or is outside the binding.
        """
        state = self.find(actor)
        if state is None or not state.has_workspace:
            raise StateNotFound
        return state
