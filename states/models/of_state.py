"""Rows of a state that are found by what the state belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from django.db import models

from states.models.catalogue import Component, Environment

if TYPE_CHECKING:
    import uuid

    from django.db.models import QuerySet

    from apikeys.bindings import Binding

Row = TypeVar("Row", bound=models.Model)
Rows = TypeVar("Rows", bound="QuerySet[Any, Any]")

#: So many ids are written into a condition; a slug may be that of more components.
_MOST_IDS: Final = 1_000


def inside_catalogue(rows: Rows, binding: Binding) -> Rows:
    """Return the rows of components and environments that a token with this binding sees.

    What it is bound to of applications is left to the caller, whose rows may tell it or not.
    """
    if binding.cluster_id is not None:
        return rows.none()
    inside = rows.all()
    if binding.component_ids is not None:
        inside = inside.filter(component_id__in=binding.component_ids)
    if binding.environment_ids is not None:
        inside = inside.filter(environment_id__in=binding.environment_ids)
    return inside


def ids_or_query(entries: QuerySet[Any, Any]) -> list[uuid.UUID] | QuerySet[Any, Any]:
    """Return the ids of the entries, by which an index finds what belongs to them.

    One query; where they are too many to be written into a condition, they stay one.
    """
    ids = entries.values_list("pk", flat=True)
    found = list(ids[: _MOST_IDS + 1])
    return found if len(found) <= _MOST_IDS else ids


class OfStateQuerySet(models.QuerySet[Row]):
    def inside(self, binding: Binding) -> Self:
        """Those of states that a token with this binding sees.

        One query when it is bound to applications: their components are looked up, because a
        component may be moved, and the rows of its states are many.
        """
        inside = inside_catalogue(self, binding)
        if binding.application_ids is not None:
            own = Component.objects.filter(application_id__in=binding.application_ids)
            inside = inside.filter(component_id__in=ids_or_query(own))
        return inside


class OfState(models.Model):
    """A row of a state."""

    state = models.ForeignKey(
        "states.State", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # Copied from the state, whose own never change, because a filter through the join cannot be
    # served by an index. The state's rows hold the constraints.
    component = models.ForeignKey(
        Component,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    environment = models.ForeignKey(
        Environment,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )

    class Meta:
        abstract = True
