"""Who calls, and what they may do, where and until when; nobody hands on more than they hold."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from apikeys.errors import GrantExceeded
from apikeys.scopes import Scope, with_included

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable

    from apikeys.tokens import TokenKind

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
        if cluster_id is None and component_ids is None and environment_ids is None:
            return EVERYWHERE
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
        if self is other or other == EVERYWHERE:
            return self
        if self.cluster_id and other.cluster_id and self.cluster_id != other.cluster_id:
            return NOWHERE
        common = (_common(ids, other.lists[name]) for name, ids in self.lists.items())
        return Binding(self.cluster_id or other.cluster_id, *common)


EVERYWHERE: Final = Binding()
# No cluster, because it names components, and none of those.
NOWHERE: Final = Binding(component_ids=frozenset(), environment_ids=frozenset())


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes, where they work and until when: what a token holds, or is to be given.

    An end that is None never comes.
    """

    scopes: frozenset[str]
    binding: Binding = EVERYWHERE
    expires_at: dt.datetime | None = None

    def columns(self) -> dict[str, Any]:
        """Return what the columns of a row hold."""
        return {
            "scopes": sorted(self.scopes),
            "expires_at": self.expires_at,
            **self.binding.columns(),
        }

    def is_within(self, other: Grant) -> bool:
        """Whether the other may do all of this, for as long."""
        return (
            self.scopes <= with_included(other.scopes)
            and self.binding.is_within(other.binding)
            and _ends_by(self.expires_at, other.expires_at)
        )

    def intersection(self, other: Grant) -> Grant:
        """Return what both may do, for as long as both may."""
        ends = [end for end in (self.expires_at, other.expires_at) if end is not None]
        return Grant(
            with_included(self.scopes) & with_included(other.scopes),
            self.binding.intersection(other.binding),
            min(ends, default=None),
        )

    def handed_on(
        self, scopes: Iterable[str], binding: Binding | None, expires_at: dt.datetime | None
    ) -> Grant:
        """Return what its holder gives away; unless said, it is bound as the holder.

        Raises:
            GrantExceeded: it would be more than what is held.
        """
        where = self.binding if binding is None else binding
        wanted = Grant(frozenset(scopes), where.within_applications_of(self.binding), expires_at)
        self.check(wanted)
        return wanted

    def check(self, wanted: Grant, holder: str = "Your token") -> None:
        """Refuse to hand on what is not held.

        Raises:
            GrantExceeded: names the scopes, or the end, or says that the binding is too wide.
        """
        if missing := wanted.scopes - with_included(self.scopes):
            raise GrantExceeded(holder, scopes=sorted(missing))
        if not wanted.binding.is_within(self.binding):
            raise GrantExceeded(holder)
        if not _ends_by(wanted.expires_at, self.expires_at):
            raise GrantExceeded(holder, latest=self.expires_at)


#: What an operator holds, at the command line and in the admin.
EVERYTHING: Final = Grant(frozenset(Scope.values))


def _ends_by(end: dt.datetime | None, latest: dt.datetime | None) -> bool:
    return latest is None or (end is not None and end <= latest)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller, as ``request.user`` and ``request.auth``."""

    kind: TokenKind
    token_id: str
    # The key itself, or the key that the token was minted from; None when an operator issued it.
    api_key_id: str | None
    # The policy by which a pipeline got the token; None for all others.
    trust_policy_id: str | None
    user_id: uuid.UUID
    username: str
    scopes: frozenset[str]
    binding: Binding
    expires_at: dt.datetime | None
    # Of the secret that was sent: a key has two for a while after a rotation.
    digest: bytes = field(repr=False)
    # Whether it is the secret before the key's last rotation, or a token from before that.
    is_retired: bool
    # As they were read, to find out whether somebody has changed the token, or its origin, since.
    revision: int
    api_key_revision: int | None
    trust_policy_revision: int | None
    is_authenticated: bool = True

    @property
    def grant(self) -> Grant:
        """What the caller may at most hand on: until its end, and a retired secret no writing."""
        lost = {Scope.APIKEY_WRITE.value} if self.is_retired else set()
        return Grant(self.scopes - lost, self.binding, self.expires_at)
