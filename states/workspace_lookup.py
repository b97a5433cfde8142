"""Queries for workspaces and state versions, which run in the round trip of authentication."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.db.models import CharField, UUIDField, Value

from infra_service.lib.database import citus
from infra_service.lib.database.compiled import CompiledQuery, Parameter, Prefetch, instance_of
from infra_service.lib.database.failures import DatabaseUnavailable
from states import slugs, workspaces
from states.addresses import Names, StateQuery
from states.keeping.reading import PLACE, PLACED_VERSION
from states.models import Application, State, StateVersion
from states.targets import STATE, StateTarget

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from apikeys.bindings import Binding
    from states.models import StateQuerySet

_FIELDS: Final = [field.attname for field in State._meta.concrete_fields]
_SLUGS: Final = ("component__slug", "environment__slug", "component__application__slug")
_PUSHED: Final = ("current_version__created_at", "current_version__created_by")
_WORKSPACE_ID: Final = re.compile(r"ws-([0-9a-f]{32})", re.ASCII)
_VERSION_ID: Final = re.compile(r"sv-([0-9a-f]{32})(?:-([0-9a-f]{32}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A state as a workspace; ``row`` is the state's row with the lock requirement."""

    state: State
    row: Sequence[Any]
    names: Names
    pushed_at: dt.datetime | None
    pushed_by: str

    @classmethod
    def of(cls, row: Sequence[Any]) -> Workspace:
        """Return the workspace for a row of ``rows_of``."""
        width = len(_FIELDS)
        state = instance_of(State, row[:width])
        state.requires_lock = row[width]
        names, pushed = Names(*row[width + 1 : width + 4]), row[width + 4 :]
        return cls(state, row[: width + 1], names, *pushed)

    @property
    def stored_name(self) -> str | None:
        """Return the stored name, or None if the name can be derived from the slugs."""
        record: dict[str, Any] = self.state.workspace or {}
        return record.get("name")

    @property
    def name(self) -> str:
        """Return the stored name, or the name derived from the slugs."""
        return self.stored_name or workspaces.name_of(self.names)

    @property
    def organization(self) -> str:
        default: str = settings.REMOTE_ORGANIZATION
        return self.names.application or default

    @property
    def tags(self) -> dict[str, str]:
        tags: dict[str, str] = (self.state.workspace or {}).get("tags", {})
        return tags

    @property
    def version_id(self) -> uuid.UUID | None:
        """Return the id of the current version, or None if the state has none or is deleted."""
        return self.state.current_version_id if self.state.deleted_at is None else None

    @property
    def target(self) -> StateTarget:
        """Return the target for actions, with the state already loaded."""
        state = self.state
        target = StateTarget(
            component_id=state.component_id, environment_id=state.environment_id, names=self.names
        )
        target.prefetched = STATE.by_ids(**target.ids)
        target.prefetched.store(self.row)
        return target

    def is_inside(self, binding: Binding) -> bool:
        """Return whether the binding includes the state."""
        return binding.allows_state(*(getattr(self.state, name) for name in PLACE))


class Version(NamedTuple):
    """A version of a visible state."""

    id: uuid.UUID
    state_id: uuid.UUID
    number: int
    serial: int
    lineage: str | None
    size_bytes: int
    created_at: dt.datetime
    created_by: str
    component_id: uuid.UUID
    environment_id: uuid.UUID
    application_id: uuid.UUID | None

    def is_inside(self, binding: Binding) -> bool:
        """Return whether the binding includes the state."""
        return binding.allows_state(*(getattr(self, name) for name in PLACE))

    @classmethod
    def of_current(cls, workspace: Workspace) -> Version:
        """Return the current version of a workspace, which must have a version.

        Raises:
            DatabaseUnavailable: the version is not visible yet (``docs/adr/0083``).
        """
        state: Any = workspace.state
        own = (state.version_number, state.serial, state.lineage, state.size_bytes)
        pushed: Any = (workspace.pushed_at, workspace.pushed_by)
        if workspace.pushed_at is None:
            version = StateVersion.objects.filter(pk=state.current_version_id, state_id=state.pk)
            pushed = version.values_list("created_at", "created_by").first()
            if pushed is None:
                raise DatabaseUnavailable
        place = (getattr(state, name) for name in PLACE)
        return cls(state.current_version_id, state.pk, *own, *pushed, *place)


def workspace_id(state_id: uuid.UUID) -> str:
    return f"ws-{state_id.hex}"


def version_id(id_: uuid.UUID) -> str:
    return f"sv-{id_.hex}"


def pending_id(state_id: uuid.UUID, md5: str) -> str:
    """Return the id of an announced version, which stays valid after the upload."""
    return f"sv-{state_id.hex}-{md5}"


def rows_of(states: StateQuerySet) -> QuerySet[State, Any]:
    """Return the columns of ``Workspace`` for these states."""
    shown = states.workspaces().with_demand()
    # On Citus, the join would read all versions, so ``Version.of_current`` reads a single version.
    nothing = Value(None, output_field=CharField())
    pushed = (nothing, nothing) if citus.is_used() else _PUSHED
    return shown.values_list(*_FIELDS, "requires_lock", *_SLUGS, *pushed)


def version_rows(versions: QuerySet[StateVersion]) -> QuerySet[StateVersion, Any]:
    """Return the columns of ``Version`` for these versions."""
    own = Version._fields[: -len(PLACE)]
    return versions.values_list(*own, *(f"state__{name}" for name in PLACE))


def _versions(**conditions: Parameter) -> QuerySet[StateVersion, Any]:
    found = StateVersion.objects.filter(state__deleted_at=None, **conditions)
    return version_rows(found.order_by("-number"))[:1]


_WORKSPACE: Final = CompiledQuery(
    lambda: rows_of(State.objects.filter(pk=Parameter("pk", UUIDField())))
)
_WORKSPACE_AT: Final = StateQuery(rows_of)
_VERSION: Final = CompiledQuery(partial(_versions, pk=Parameter("pk", UUIDField())))
_UPLOADED: Final = CompiledQuery(
    partial(
        _versions,
        state_id=Parameter("state_id", UUIDField()),
        md5=Parameter("md5", CharField()),
    )
)


def by_state_id(state_id: uuid.UUID) -> Prefetch[State]:
    """Return the query for a state's workspace."""
    return Prefetch(_WORKSPACE, pk=state_id)


def by_id(text: str) -> Prefetch[State] | None:
    """Return the query for a workspace by id, or None if the id is malformed."""
    found = _WORKSPACE_ID.fullmatch(text)
    return None if found is None else by_state_id(uuid.UUID(found[1]))


def names_at(organization: str, name: str) -> Names:
    """Return the slugs for a workspace name in an organization."""
    is_default = organization == settings.REMOTE_ORGANIZATION
    return workspaces.names_of(name, None if is_default else organization)


def by_name(organization: str, name: str) -> Prefetch[State] | None:
    """Return the query for a workspace by name, or None if a name is malformed."""
    if not workspaces.is_name(name):
        return None
    names = names_at(organization, name)
    return _WORKSPACE_AT.by_names(names) if names.is_valid else None


def version_by_id(text: str) -> Prefetch[StateVersion] | None:
    """Return the query for a version, or None if the id is malformed."""
    found = _VERSION_ID.fullmatch(text)
    if found is None:
        return None
    id_ = uuid.UUID(found[1])
    return Prefetch(_VERSION, pk=id_) if found[2] is None else version_by_digest(id_, found[2])


def version_by_digest(state_id: uuid.UUID, md5: str) -> Prefetch[StateVersion]:
    """Return the query for the newest version of a state with this MD5 digest."""
    return Prefetch(_UPLOADED, state_id=state_id, md5=md5)


def document_by_id(text: str) -> Prefetch[StateVersion] | None:
    """Return the query for a version's document, or None if the id is malformed."""
    found = _VERSION_ID.fullmatch(text)
    if found is None or found[2]:
        return None
    return Prefetch(PLACED_VERSION, pk=uuid.UUID(found[1]))


def organization_exists(name: str, binding: Binding) -> bool:
    """Return whether an organization is visible to callers with this binding."""
    if name == settings.REMOTE_ORGANIZATION:
        return binding.cluster_id is None
    is_slug = slugs.is_slug(name, "application")
    return is_slug and Application.objects.inside(binding).filter(slug=name).exists()
