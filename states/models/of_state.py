"""Rows of a state that are found by its catalogue entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from django.db import models

from filterlang.lookups import TextMatches
from states.models.catalogue import Component, Environment

if TYPE_CHECKING:
    import uuid

    from django.db.models import QuerySet

    from apikeys.bindings import Binding
    from filterlang.lookups import Piece
    from states.models.catalogue_entry import CatalogueEntry

Row = TypeVar("Row", bound=models.Model)
Rows = TypeVar("Rows", bound="QuerySet[Any, Any]")

#: Maximum ids in a condition. Components of different applications may share a slug.
_MOST_IDS: Final = 1_000
#: Maximum catalogue names that a text search examines before it reads states.
_MOST_NAMES: Final = 50_000


def inside_catalogue(rows: Rows, binding: Binding) -> Rows:
    """Return the rows of components and environments within this binding.

    The caller handles the binding's applications, because only some rows have that column.
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
    """Return the ids of the entries, by which an index finds the rows that belong to them.

    One query; if there are too many ids for a condition, return the query itself.
    """
    ids = entries.values_list("pk", flat=True)
    found = list(ids[: _MOST_IDS + 1])
    return found if len(found) <= _MOST_IDS else ids


def with_part_of_name(model: type[CatalogueEntry], piece: Piece) -> list[uuid.UUID] | None:
    """Return the ids of the entries with this part in their name.

    Return None for too many entries, or for a search of too many names: only the beginning of a
    name has an index.
    """
    is_indexed = piece.at_start and not piece.ignore_case
    if not is_indexed and model.objects.order_by("pk")[_MOST_NAMES:].values("pk")[:1]:
        return None
    named = model.objects.filter((f"name__{TextMatches.lookup_name}", piece))
    ids = list(named.values_list("pk", flat=True)[: _MOST_IDS + 1])
    return ids if len(ids) <= _MOST_IDS else None


class OfStateQuerySet(models.QuerySet[Row]):
    def inside(self, binding: Binding) -> Self:
        """Return the rows of states within this binding.

        A binding to applications costs a query for their components: the rows have no application,
        because a component may be moved and its states have many rows.
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
    # Copied from the state, where it never changes, because an index cannot serve a filter through
    # the join. The state's rows hold the constraints.
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
