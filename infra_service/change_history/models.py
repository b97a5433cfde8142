"""Changes of resources, derived from the versions of states, so that they can be rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import Q

from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from states.document.resource_changes import ResourceAction
from states.fields import CreatedAtField, IdAt
from states.models import Component, Environment, State, StateVersion, VersionFacts
from states.models.of_state import OfStateQuerySet
from states.models.resources import MOST_BYTES

if TYPE_CHECKING:
    import datetime as dt
    import uuid

#: The action of a version whose changes cannot be determined; ``problem`` is the reason.
UNKNOWN: Final = "UNKNOWN"
ACTIONS: Final = (*(action.value for action in ResourceAction), UNKNOWN)


def _row_of(model: type[models.Model], on_delete: Any = models.DO_NOTHING, **options: Any) -> Any:
    """Return a foreign key without a constraint.

    The previous release deletes such rows without knowing this table.
    """
    options = {"db_index": False, "related_name": "+", **options}
    return models.ForeignKey(model, on_delete=on_delete, db_constraint=False, **options)


class ChangeQuerySet(OfStateQuerySet["Change"]):
    def with_names(self) -> ChangeQuerySet:
        """Annotate the slugs of the catalogue entries, and the facts of the version."""
        return self.annotate(
            component_slug=ColumnOf(Component, "component_id", "slug"),
            environment_slug=ColumnOf(Environment, "environment_id", "slug"),
            commit=ColumnOf(VersionFacts, "version_id", "commit"),
            run_url=ColumnOf(VersionFacts, "version_id", "run_url"),
        )


class Change(models.Model):
    """A change of a resource between a version and the one before, without any value.

    It is deleted with its version. Ids are UUIDv7 of the version's time: newer versions have
    greater ids, and within a version the order of addresses is descending.
    """

    #: Columns ordered by bytes, where a prefix is a range.
    byte_ordered = frozenset({"address", "type", "provider"})

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, editable=False)
    # Of the version, like the following; copied, because an index cannot serve a filter through a
    # join.
    occurred_at: models.DateTimeField[dt.datetime, dt.datetime] = CreatedAtField()
    created_by = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)
    version = _row_of(StateVersion, models.CASCADE, db_index=True)
    version_number = models.PositiveIntegerField()
    state = _row_of(State)
    component = _row_of(Component)
    environment = _row_of(Environment)
    action = models.CharField(max_length=10, choices=[(action, action) for action in ACTIONS])
    problem = models.CharField(max_length=40, blank=True)
    address = models.CharField(max_length=MOST_BYTES, blank=True)
    previous_address = models.CharField(max_length=MOST_BYTES, blank=True)
    type = models.CharField(max_length=MOST_BYTES, blank=True)
    provider = models.CharField(max_length=MOST_BYTES, blank=True)
    # Names of changed attributes.
    attributes = models.JSONField(default=list)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                name="change_action_known",
                condition=Q(action__in=ACTIONS) & (Q(action=UNKNOWN) ^ Q(problem="")),
            ),
            models.CheckConstraint(
                name="change_occurred_with_its_id",
                condition=Q(
                    id__gte=IdAt("occurred_at", last=False), id__lte=IdAt("occurred_at", last=True)
                ),
            ),
        ]
        # Each ends with the order of the list, so that a page is read and never sorted.
        indexes = [
            models.Index(name=f"change_by_{name}", fields=[name, "-id"])
            for name in ("state", "component", "environment", "type", "provider", "address")
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.address}"


class RecordedState(models.Model):
    """The newest version of a state whose changes are stored."""

    state = models.OneToOneField(
        State, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="+"
    )
    number = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.state_id} #{self.number}"
