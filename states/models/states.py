"""States: what is known of each without its documents, and what a query means for many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from infra_service.lib.database.pages.selecting import ColumnOf
from states.fields import CreatedAtField, IdAt
from states.models.catalogue import Application, Component, Environment
from states.models.of_state import inside_catalogue

if TYPE_CHECKING:
    import uuid

    from apikeys.bindings import Binding
    from infra_service.lib.database.compiled import Parameter

#: Of which states the index of resources is behind. Without a parameter, for PostgreSQL compares it
#: with the condition of the index on it.
_BEHIND: Final = Q(deleted_at=None, indexed_number__lt=F("version_number"))
#: The others. A push takes its state out of an index with this condition, and writes nothing there.
_INDEXED: Final = Q(deleted_at=None, indexed_number__gte=F("version_number"))
#: ``State.index_key`` of those that are in the index, and are to be read again.
OUTDATED: Final = "0"
#: Characters of a key's name in ``State.index_key``, behind the number of the rules and a dot.
KEY_NAME_LENGTH: Final = 12


class StateQuerySet(models.QuerySet["State"]):
    """Rules over many states, and the conditional writes that decide races."""

    def visible(self) -> StateQuerySet:
        """Those that are not deleted."""
        return self.filter(deleted_at=None)

    def inside(self, binding: Binding) -> StateQuerySet:
        """Those that a token with this binding sees."""
        inside = inside_catalogue(self, binding)
        if binding.application_ids is not None:
            inside = inside.filter(application_id__in=binding.application_ids)
        return inside

    def behind(self) -> StateQuerySet:
        """Those whose current version is not in the index of resources."""
        return self.filter(_BEHIND)

    def indexed(self) -> StateQuerySet:
        """Those whose current version is in the index, or that have none."""
        return self.filter(_INDEXED)

    def outdated(self) -> StateQuerySet:
        """Those that are in the index as other rules or another key have it."""
        return self.indexed().filter(index_key=OUTDATED)

    def due(self) -> StateQuerySet:
        """Those whose current version is to be indexed, for either reason."""
        return self.filter(_BEHIND | (_INDEXED & Q(index_key=OUTDATED)))

    def with_digests_of_other_keys(self, key_name: str) -> StateQuerySet:
        """Return the states whose digests in the index another key than this one made."""
        indexed = self.visible().filter(indexed_number__gt=0)
        return indexed.exclude(index_key__endswith=f".{key_name[:KEY_NAME_LENGTH]}")

    def unreadable(self) -> StateQuerySet:
        """Those of which no resource can be indexed."""
        return self.visible().exclude(index_problem="")

    def with_names(self) -> StateQuerySet:
        """Return them with the names and slugs of what they belong to.

        Each is looked up for a row that is shown, and for no other. Of a join the planner may
        read all components first, for a page of fifty states.
        """
        return self.annotate(
            application_slug=ColumnOf(Application, "application_id", "slug"),
            component_name=ColumnOf(Component, "component_id", "name"),
            component_slug=ColumnOf(Component, "component_id", "slug"),
            environment_name=ColumnOf(Environment, "environment_id", "name"),
            environment_slug=ColumnOf(Environment, "environment_id", "slug"),
        )

    def with_demand(self) -> StateQuerySet:
        """Return them with what ``rules.check_demand`` asks: whether a push needs the lock."""
        return self.annotate(  # type: ignore[no-redef]  # its type is declared below
            requires_lock=F("environment__require_lock")
        )

    def of(
        self, component_id: uuid.UUID | Parameter, environment_id: uuid.UUID | Parameter
    ) -> StateQuerySet:
        """Return the one of this component and environment, deleted or not."""
        return self.filter(component_id=component_id, environment_id=environment_id)

    def as_seen(self, state: State) -> StateQuerySet:
        """Return the state if nobody changed it since it was read."""
        return self.filter(pk=state.pk, revision=state.revision)

    def change(self, **values: Any) -> int:
        """Update, and let those who have read the rows before find out."""
        return self.update(revision=F("revision") + 1, **values)


class State(models.Model):
    """The state record of a (component, environment).

    What lists show of the current version is copied here, so that a list reads one table.
    ``serial``, ``md5`` and the like are null until the first push.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # The composite unique index leads with the component; one on the column alone would mislead
    # the planner.
    component = models.ForeignKey(Component, on_delete=models.PROTECT, db_index=False)
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, db_index=False)
    # Copied from the component, because a filter through the join cannot be served by an index.
    application = models.ForeignKey(
        Application, on_delete=models.PROTECT, null=True, blank=True, db_index=False
    )
    # Counts the changes: a writer that has seen an older one has lost the race.
    revision = models.PositiveIntegerField(default=0)
    # Counts the pushes; it only ever grows, also over a deletion.
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
    # The name and the token of whom the service let in, and the ID of the lock that it is about;
    # unknown of locks of before. What is in lock_info the client says, and its ID is shown to
    # everybody who finds the state locked.
    lock_taken_by = models.JSONField(null=True)
    created_at = CreatedAtField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)
    # The version whose resources are in the index, as far as they could be read; written beside the
    # pushes, so without a new revision. 0 is none.
    indexed_number = models.PositiveIntegerField(default=0, db_default=0)
    # Why that version's resources are not there: the reason of an error.
    index_problem = models.CharField(max_length=40, blank=True, default="", db_default="")
    # By which rules it is indexed, and with which of STATE_ENCRYPTION_KEYS its digests are made; or
    # OUTDATED.
    index_key = models.CharField(max_length=16, blank=True, default="", db_default="")
    #: Of the environment, where the queryset is ``with_demand()``.
    requires_lock: bool

    objects = StateQuerySet.as_manager()

    class Meta:
        # Of the admin; over the API the scopes decide.
        permissions = [
            ("force_unlock_state", "Can force-unlock states"),
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
            # Also the index without which each version that is pruned would read all states.
            models.UniqueConstraint(name="state_current_version", fields=["current_version"]),
            models.CheckConstraint(
                name="state_created_with_its_id",
                condition=Q(
                    id__gte=IdAt("created_at", last=False), id__lte=IdAt("created_at", last=True)
                ),
            ),
        ]
        indexes = [
            # For the list of states, which is ordered by id: each ends with it, so that a page is
            # read and never sorted. The first three tell where a state belongs, and are written
            # once; the next four change with each push.
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
            # What a bound token sees of the catalogue, in the order of its lists: the components
            # of an environment, and the environments of a component.
            *(
                models.Index(
                    name=f"state_by_{bound}_{shown}",
                    fields=[bound, shown],
                    condition=Q(deleted_at=None),
                )
                for bound, shown in (("environment", "component"), ("component", "environment"))
            ),
            # All that is listed; without it the list would walk past what was deleted.
            models.Index(name="state_present", fields=["id"], condition=Q(deleted_at=None)),
            models.Index(
                name="state_locked",
                fields=["id"],
                condition=Q(deleted_at=None, lock_id__isnull=False),
            ),
            models.Index(name="state_index_due", fields=["id"], condition=_BEHIND),
            # What other rules or another key have indexed, found without looking at the others.
            models.Index(name="state_by_index_key", fields=["index_key", "id"], condition=_INDEXED),
            models.Index(
                name="state_unreadable",
                fields=["id"],
                condition=Q(deleted_at=None) & ~Q(index_problem=""),
            ),
            # The list of what can be brought back.
            models.Index(
                name="state_deleted", fields=["id"], condition=Q(deleted_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.component} in {self.environment}"
