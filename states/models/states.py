"""States, their querysets, and the conditions for the resource index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import ExpressionWrapper, F, Q
from django.utils import timezone

from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from infra_service.lib.uuids import uuid7
from states.fields import CreatedAtField, IdAt
from states.models.catalogue import Application, Component, Environment
from states.models.engines import Engine
from states.models.of_state import inside_catalogue

if TYPE_CHECKING:
    import uuid

    from apikeys.bindings import Binding
    from infra_service.lib.database.compiled import Parameter

#: States whose current version is not in the resource index. The condition has no parameter, so
#: that PostgreSQL can match it with the condition of the partial index.
_BEHIND: Final = Q(deleted_at=None, indexed_number__lt=F("version_number"))
#: All other visible states. A push removes its state from an index with this condition.
_INDEXED: Final = Q(deleted_at=None, indexed_number__gte=F("version_number"))
#: The ``State.index_key`` of indexed states that must be indexed again.
OUTDATED: Final = "0"
#: Characters of the key's name in ``State.index_key``, after the number of the rules and a dot.
KEY_NAME_LENGTH: Final = 12


class StateQuerySet(models.QuerySet["State"]):
    """Queries for states, and the conditional writes that resolve races."""

    def visible(self) -> StateQuerySet:
        """Return the states that are not deleted."""
        return self.filter(deleted_at=None)

    def inside(self, binding: Binding) -> StateQuerySet:
        """Return the states within this binding."""
        inside = inside_catalogue(self, binding)
        if binding.application_ids is not None:
            inside = inside.filter(application_id__in=binding.application_ids)
        return inside

    def behind(self) -> StateQuerySet:
        """Return the states whose current version is not in the resource index."""
        return self.filter(_BEHIND)

    def indexed(self) -> StateQuerySet:
        """Return the states with an indexed current version, or without a version."""
        return self.filter(_INDEXED)

    def outdated(self) -> StateQuerySet:
        """Return the indexed states that are marked to be indexed again."""
        return self.indexed().filter(index_key=OUTDATED)

    def due(self) -> StateQuerySet:
        """Return the states that must be indexed: states that are behind or outdated."""
        return self.filter(_BEHIND | (_INDEXED & Q(index_key=OUTDATED)))

    def with_digests_of_other_keys(self, key_name: str) -> StateQuerySet:
        """Return the states whose digests in the index were computed with another key."""
        indexed = self.visible().filter(indexed_number__gt=0)
        return indexed.exclude(index_key__endswith=f".{key_name[:KEY_NAME_LENGTH]}")

    def unreadable(self) -> StateQuerySet:
        """Return the states whose resources cannot be indexed."""
        return self.visible().exclude(index_problem="")

    def with_names(self) -> StateQuerySet:
        """Annotate the names and slugs of the catalogue entries, and ``client_encrypted``.

        The names are looked up only for the rows of a page. With a join, the planner could read all
        components for a page of fifty states.
        """
        return self.annotate(
            application_slug=ColumnOf(Application, "application_id", "slug"),
            component_name=ColumnOf(Component, "component_id", "name"),
            component_slug=ColumnOf(Component, "component_id", "slug"),
            environment_name=ColumnOf(Environment, "environment_id", "name"),
            environment_slug=ColumnOf(Environment, "environment_id", "slug"),
            client_encrypted=ExpressionWrapper(
                Q(is_client_encrypted__isnull=False), models.BooleanField()
            ),
        )

    def workspaces(self) -> StateQuerySet:
        """Return the states that the remote backend shows: states of entries with slugs."""
        shown = self.filter(Q(deleted_at=None) | Q(workspace__isnull=False))
        return shown.filter(component__slug__isnull=False, environment__slug__isnull=False)

    def with_failing_checks(self) -> StateQuerySet:
        """Return the states with failing ``check`` blocks."""
        return self.visible().filter(failing_checks__isnull=False)

    def client_encrypted(self) -> StateQuerySet:
        """Return the states that OpenTofu encrypted on the client."""
        return self.visible().filter(is_client_encrypted__isnull=False)

    def frozen(self) -> StateQuerySet:
        """Return the frozen states."""
        return self.visible().filter(frozen_at__isnull=False)

    def overdue(self) -> StateQuerySet:
        """Return the states that are still frozen after the expected end of their freeze."""
        return self.frozen().filter(freeze_expected_until__lt=timezone.now())

    def with_demand(self) -> StateQuerySet:
        """Annotate whether a push requires a lock, for ``rules.check_demand``."""
        return self.annotate(  # type: ignore[no-redef]  # its type is declared below
            requires_lock=F("environment__require_lock")
        )

    def of(
        self, component_id: uuid.UUID | Parameter, environment_id: uuid.UUID | Parameter
    ) -> StateQuerySet:
        """Return the state of this component and environment, deleted or not."""
        return self.filter(component_id=component_id, environment_id=environment_id)

    def as_seen(self, state: State) -> StateQuerySet:
        """Return a queryset that matches the state only if it has not changed since its load."""
        return self.filter(pk=state.pk, revision=state.revision)

    def change(self, **values: Any) -> int:
        """Update the rows and their revision, so that concurrent writers detect the change."""
        return self.update(revision=F("revision") + 1, **values)


class State(models.Model):
    """The state of a component in an environment.

    The row contains copies of the fields of the current version that lists show, so that a list
    reads a single table. These fields are null until the first push.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # The composite unique index starts with the component. A second index on the column would
    # mislead the planner.
    component = models.ForeignKey(Component, on_delete=models.PROTECT, db_index=False)
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, db_index=False)
    # Copied from the component, because an index cannot serve a filter through a join.
    application = models.ForeignKey(
        Application, on_delete=models.PROTECT, null=True, blank=True, db_index=False
    )
    # The number of changes. A writer with an older value lost the race.
    revision = models.PositiveIntegerField(default=0)
    # The number of the newest version. It never decreases, even after a deletion.
    version_number = models.PositiveIntegerField(default=0)
    current_version = models.ForeignKey(
        "states.StateVersion",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
    )
    serial = models.BigIntegerField(null=True)
    lineage = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null before the first push
    md5 = models.CharField(max_length=32, null=True)  # noqa: DJ001 - null before the first push
    size_bytes = models.BigIntegerField(null=True)
    lock_id = models.UUIDField(null=True)
    lock_info = models.JSONField(null=True)
    lock_acquired_at = models.DateTimeField(null=True)
    # The name and token of the authenticated owner, the ID of the lock, and the backend; null for
    # locks from earlier releases. lock_info comes from the client, and every client that the lock
    # refuses sees its ID.
    lock_taken_by = models.JSONField(null=True)
    # The record of a workspace in the remote backend: ``tags``, and ``name`` if it cannot be
    # derived from the slugs. The remote backend shows a state with a record even before its first
    # push.
    workspace = models.JSONField(null=True)
    # The record of the workspace before the deletion of the state, for its undeletion.
    deleted_workspace = models.JSONField(null=True)
    # An operator's freeze (states.actions.freezing), independent of a client's lock.
    frozen_at = models.DateTimeField(null=True)
    frozen_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    freeze_reason = models.CharField(max_length=1000, blank=True, default="", db_default="")
    # Information only: the state stays frozen after this time.
    freeze_expected_until = models.DateTimeField(null=True)
    created_at = CreatedAtField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)
    # The number of the version that was indexed, or 0. Its resources are in the index if the
    # document is readable. The indexer writes this column without a new revision.
    indexed_number = models.PositiveIntegerField(default=0, db_default=0)
    # The reason of the error that prevented the indexing of this version.
    index_problem = models.CharField(max_length=40, blank=True, default="", db_default="")
    # The number of the index's rules and the name of the key for the digests, or OUTDATED.
    index_key = models.CharField(max_length=16, blank=True, default="", db_default="")
    # The engine of the indexed version; null until it is indexed, and in deleted states.
    engine = models.CharField(max_length=10, choices=Engine, null=True)  # noqa: DJ001 - see above
    # True or null, because the partial index contains the rows that are not null.
    is_client_encrypted = models.BooleanField(null=True)
    # Addresses of failing ``check`` blocks; null if no check fails, or the results are unknown.
    failing_checks = models.JSONField(null=True)
    #: The environment's ``require_lock``; only in a queryset ``with_demand()``.
    requires_lock: bool

    objects = StateQuerySet.as_manager()

    class Meta:
        # The permissions of the admin. The API checks scopes instead.
        permissions = [
            ("force_unlock_state", "Can force-unlock states"),
            ("freeze_state", "Can freeze and unfreeze states"),
            ("restore_state", "Can restore states"),
            ("download_state", "Can download documents of states, with all secrets in them"),
        ]
        constraints = [
            models.UniqueConstraint(
                name="state_of_component_and_environment", fields=["component", "environment"]
            ),
            models.CheckConstraint(
                name="state_lock_whole_or_absent",
                condition=Q(lock_id=None, lock_info=None, lock_acquired_at=None)
                | Q(lock_id__isnull=False, lock_info__isnull=False, lock_acquired_at__isnull=False),
            ),
            models.CheckConstraint(
                name="state_version_whole_or_absent",
                condition=Q(
                    version_number=0, current_version=None, serial=None, md5=None, size_bytes=None
                )
                | Q(
                    version_number__gt=0,
                    current_version__isnull=False,
                    serial__gte=0,
                    md5__isnull=False,
                    size_bytes__gt=0,
                ),
            ),
            # Without this index, the deletion of a version would read all states.
            models.UniqueConstraint(name="state_current_version", fields=["current_version"]),
            models.CheckConstraint(
                name="state_created_with_its_id",
                condition=Q(
                    id__gte=IdAt("created_at", last=False), id__lte=IdAt("created_at", last=True)
                ),
            ),
        ]
        indexes = [
            # For filters of the list of states. Each index ends with the id, the order of the list,
            # so that a page is read without sorting. The first three indexes rarely change. The
            # other four change with each push.
            *(
                models.Index(name=name, fields=[*fields, "id"], condition=Q(deleted_at=None))
                for name, fields in {
                    "state_by_application": ["application"],
                    "state_by_application_env": ["application", "environment"],
                    "state_by_environment": ["environment"],
                    "state_by_serial": ["serial"],
                    "state_by_lineage": ["lineage"],
                    "state_by_size": ["size_bytes"],
                    "state_by_update": ["updated_at"],
                }.items()
            ),
            # For the catalogue lists of a bound token, in their order: the components of an
            # environment, and the environments of a component.
            *(
                models.Index(
                    name=f"state_by_{bound}_{shown}",
                    fields=[bound, shown],
                    condition=Q(deleted_at=None),
                )
                for bound, shown in (("environment", "component"), ("component", "environment"))
            ),
            # All listed states. Without this index, the list would read deleted states.
            models.Index(name="state_present", fields=["id"], condition=Q(deleted_at=None)),
            *(
                models.Index(
                    name=name,
                    fields=[*fields, "id"],
                    condition=Q(**{"deleted_at": None, f"{column}__isnull": False}),
                )
                for name, column, fields in (
                    ("state_by_engine", "engine", ["engine"]),
                    # These indexes contain few states, so most pushes do not write to them.
                    ("state_locked", "lock_id", ()),
                    ("state_by_lock_age", "lock_acquired_at", ["lock_acquired_at"]),
                    ("state_frozen", "frozen_at", ()),
                    ("state_failing_checks", "failing_checks", ()),
                    ("state_client_encrypted", "is_client_encrypted", ()),
                )
            ),
            models.Index(name="state_index_due", fields=["id"], condition=_BEHIND),
            # Finds states that were indexed with other rules or another key.
            models.Index(name="state_by_index_key", fields=["index_key", "id"], condition=_INDEXED),
            models.Index(
                name="state_unreadable",
                fields=["id"],
                condition=Q(deleted_at=None) & ~Q(index_problem=""),
            ),
            # For the search for workspaces by tag or stored name. Most states have no record.
            models.Index(
                name="state_with_workspace", fields=["id"], condition=Q(workspace__isnull=False)
            ),
            # For the list of deleted states.
            models.Index(
                name="state_deleted", fields=["id"], condition=Q(deleted_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.component} in {self.environment}"

    @property
    def has_workspace(self) -> bool:
        """Return whether the state is not deleted, or has a new workspace since its deletion."""
        return self.deleted_at is None or self.workspace is not None

    @property
    def is_overdue(self) -> bool:
        """Return whether the state is still frozen after the expected end of its freeze."""
        until = self.freeze_expected_until
        return until is not None and until < timezone.now()
