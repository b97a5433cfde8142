"""Rows of a state that are found by what the state belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models

from states.entries import Component, Environment, ids_or_query, inside_catalogue

if TYPE_CHECKING:
    from apikeys.grants import Binding

Row = TypeVar("Row", bound=models.Model)


class OfStateQuerySet(models.QuerySet[Row]):
    """Rules over the rows of many states."""

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
