"""Where keys and tokens work: what is inside of a binding, and of two."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Ids = frozenset[uuid.UUID] | None

#: What the states of a binding are bound by.
LISTS: Final = ("component_ids", "environment_ids", "application_ids")


#: Stands in the row of what is bound to applications and to no components. A release that knows no
#: applications finds a component that is none, and lets nothing through.
_NO_COMPONENT: Final = [str(uuid.UUID(int=0))]


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a token works. None is everywhere; outside, everything is answered with 404.

    A token is bound to one cluster; or to components, environments and applications, all of which
    must hold for a state; or to nothing.
    """

    cluster_id: uuid.UUID | None = None
    component_ids: Ids = None
    environment_ids: Ids = None
    #: Applications, with all components that they have when a request comes.
    application_ids: Ids = None

    @classmethod
    def of_columns(
        cls,
        cluster_id: uuid.UUID | None,
        component_ids: Collection[str] | None,
        environment_ids: Collection[str] | None,
        application_ids: Collection[str] | None,
    ) -> Binding:
        """Return the binding that a row's ``bound_…`` columns hold."""
        if application_ids is not None and component_ids == _NO_COMPONENT:
            component_ids = None
        lists = map(_uuids, (component_ids, environment_ids, application_ids))
        return cls(cluster_id, *lists)

    def columns(self) -> dict[str, Any]:
        """Return what the ``bound_…`` columns of a row hold."""
        columns = {f"bound_{name}": _texts(ids) for name, ids in self.lists.items()}
        if self.application_ids is not None and self.component_ids is None:
            columns["bound_component_ids"] = _NO_COMPONENT
        return {"bound_cluster_id": self.cluster_id, **columns}

    def described(self) -> dict[str, Any] | None:
        """Return the binding as the audit trail keeps it."""
        if self == EVERYWHERE:
            return None
        return {
            "cluster_id": None if self.cluster_id is None else str(self.cluster_id),
            **{name: _texts(ids) for name, ids in self.lists.items()},
        }

    @property
    def lists(self) -> dict[str, Ids]:
        """What the states are bound by."""
        return {name: getattr(self, name) for name in LISTS}

    @property
    def ids_by_kind(self) -> dict[str, list[str]]:
        """The ids that it names of each kind, sorted; only kinds that it names."""
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
        """Whether the state of this component and environment is inside; None is a new one.

        ``application_id`` is the component's.
        """
        return (
            self.cluster_id is None
            and (self.component_ids is None or component_id in self.component_ids)
            and (self.environment_ids is None or environment_id in self.environment_ids)
            and (self.application_ids is None or application_id in self.application_ids)
        )

    def allows_cluster(self, cluster_id: uuid.UUID) -> bool:
        """Whether the cluster is inside."""
        return self.cluster_id in (None, cluster_id) and not any(
            ids is not None for ids in self.lists.values()
        )

    def is_within(self, other: Binding) -> bool:
        """Whether everything that is inside this binding is inside the other."""
        return (
            other.cluster_id in (None, self.cluster_id)
            # A cluster's token reaches clusters, which components and environments do not hold.
            and (self.cluster_id is None or other.allows_cluster(self.cluster_id))
            and _within(self.component_ids, other.component_ids)
            and _within(self.environment_ids, other.environment_ids)
            and _within(self.application_ids, other.application_ids)
        )

    def within_applications_of(self, other: Binding) -> Binding:
        """Return the binding, of components alone within the applications of the other.

        So they are inside of it, and none is reached any more that is moved to elsewhere.
        """
        if self.component_ids is None or self.application_ids is not None:
            return self
        return dataclasses.replace(self, application_ids=other.application_ids)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is inside: no row of a key or token holds such a binding."""
        lists = [ids for ids in self.lists.values() if ids is not None]
        return not all(lists) or (self.cluster_id is not None and bool(lists))

    def intersection(self, other: Binding) -> Binding:
        """Return what is inside both."""
        if self.cluster_id and other.cluster_id and self.cluster_id != other.cluster_id:
            return NOWHERE
        common = (_common(ids, other.lists[name]) for name, ids in self.lists.items())
        return Binding(self.cluster_id or other.cluster_id, *common)


EVERYWHERE: Final = Binding()
# No cluster, because it names components, and none of those.
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
