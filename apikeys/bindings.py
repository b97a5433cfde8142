"""Bindings of keys and tokens to clusters, components, environments and applications."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Ids = frozenset[uuid.UUID] | None

#: Kinds of entries that limit access to states.
LISTS: Final = ("component_ids", "environment_ids", "application_ids")


#: A placeholder component in the row of a binding to applications only. A release without support
#: for applications reads it as an unknown component and denies access. Requests cannot contain it.
PLACEHOLDER: Final = uuid.UUID(int=0)
_NO_COMPONENT: Final = [str(PLACEHOLDER)]


@dataclass(frozen=True, slots=True)
class Binding:
    """The binding of a key or token. Requests for objects outside the binding receive 404.

    A token is bound to a single cluster, or to components, environments and applications, or is
    unrestricted. A state must match all lists. A list that is None is unrestricted.
    """

    cluster_id: uuid.UUID | None = None
    component_ids: Ids = None
    environment_ids: Ids = None
    #: Applications, with all their components at the time of a request.
    application_ids: Ids = None

    @classmethod
    def of_columns(
        cls,
        cluster_id: uuid.UUID | None,
        component_ids: Collection[str] | None,
        environment_ids: Collection[str] | None,
        application_ids: Collection[str] | None,
    ) -> Binding:
        """Return the binding in the ``bound_…`` columns of a row."""
        if application_ids is not None and component_ids == _NO_COMPONENT:
            component_ids = None
        lists = map(_uuids, (component_ids, environment_ids, application_ids))
        return cls(cluster_id, *lists)

    def columns(self) -> dict[str, Any]:
        """Return the values of the ``bound_…`` columns of a row."""
        columns = {f"bound_{name}": _texts(ids) for name, ids in self.lists.items()}
        if self.application_ids is not None and self.component_ids is None:
            columns["bound_component_ids"] = _NO_COMPONENT
        return {"bound_cluster_id": self.cluster_id, **columns}

    def described(self) -> dict[str, Any] | None:
        """Return the binding as JSON for the API and the audit log; None if unrestricted."""
        if self == EVERYWHERE:
            return None
        return {
            "cluster_id": None if self.cluster_id is None else str(self.cluster_id),
            **{name: _texts(ids) for name, ids in self.lists.items()},
        }

    @property
    def lists(self) -> dict[str, Ids]:
        """Return the lists of ids that limit access to states."""
        return {name: getattr(self, name) for name in LISTS}

    @property
    def is_for_states(self) -> bool:
        """Return whether lists limit the binding to states, and thus exclude all clusters."""
        return any(ids is not None for ids in self.lists.values())

    @property
    def ids_by_kind(self) -> dict[str, list[str]]:
        """Return the sorted ids by kind, without kinds that have no ids."""
        named: dict[str, Iterable[uuid.UUID]] = {
            "cluster": [] if self.cluster_id is None else [self.cluster_id],
            "application": self.application_ids or (),
            "component": self.component_ids or (),
            "environment": self.environment_ids or (),
        }
        return {kind: sorted(map(str, ids)) for kind, ids in named.items() if ids}

    def allows_state(
        self,
        component_id: uuid.UUID | None,
        environment_id: uuid.UUID | None,
        application_id: uuid.UUID | None,
    ) -> bool:
        """Return whether the binding contains a state.

        ``component_id`` is None for a new component. ``application_id`` is the application of the
        component.
        """
        return (
            self.cluster_id is None
            and (self.component_ids is None or component_id in self.component_ids)
            and (self.environment_ids is None or environment_id in self.environment_ids)
            and (self.application_ids is None or application_id in self.application_ids)
        )

    def allows_cluster(self, cluster_id: uuid.UUID) -> bool:
        return self.cluster_id in (None, cluster_id) and not self.is_for_states

    def is_within(self, other: Binding) -> bool:
        """Return whether the other binding contains this binding."""
        return (
            other.cluster_id in (None, self.cluster_id)
            # A cluster token accesses clusters, which bindings to components, environments and
            # applications exclude.
            and (self.cluster_id is None or other.allows_cluster(self.cluster_id))
            and _within(self.component_ids, other.component_ids)
            and _within(self.environment_ids, other.environment_ids)
            and _within(self.application_ids, other.application_ids)
        )

    def within_applications_of(self, other: Binding) -> Binding:
        """Add the applications of the other binding to a binding that lists only components.

        The result stays within the other binding, because a component that moves to another
        application becomes inaccessible.
        """
        if self.component_ids is None or self.application_ids is not None:
            return self
        return dataclasses.replace(self, application_ids=other.application_ids)

    @property
    def is_empty(self) -> bool:
        """Return whether the binding includes nothing. Rows never contain an empty binding."""
        lists = [ids for ids in self.lists.values() if ids is not None]
        return not all(lists) or (self.cluster_id is not None and self.is_for_states)

    def intersection(self, other: Binding) -> Binding:
        if self.cluster_id and other.cluster_id and self.cluster_id != other.cluster_id:
            return NOWHERE
        common = (_common(ids, other.lists[name]) for name, ids in self.lists.items())
        return Binding(self.cluster_id or other.cluster_id, *common)


EVERYWHERE: Final = Binding()
# The lists exclude all clusters, and their emptiness excludes all states.
NOWHERE: Final = Binding(component_ids=frozenset(), environment_ids=frozenset())


def _within(ids: Ids, others: Ids) -> bool:
    return others is None or (ids is not None and ids <= others)


def _common(ids: Ids, others: Ids) -> Ids:
    if ids is None or others is None:
        return ids if others is None else others
    return ids & others


def _uuids(texts: Collection[str] | None) -> Ids:
    return None if texts is None else frozenset(map(uuid.UUID, texts))


def _texts(ids: Ids) -> list[str] | None:
    return None if ids is None else sorted(map(str, ids))
