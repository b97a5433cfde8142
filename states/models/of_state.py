"""The base of models that belong to a state, with filters by its catalogue entries."""

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

#: Maximum ids in a condition. Many components can share a slug, each in another application.
_MOST_IDS: Final = 1_000
#: Maximum catalogue names that a text search examines before it reads states.
_MOST_NAMES: Final = 50_000


def inside_catalogue(rows: Rows, binding: Binding) -> Rows:
    """Return the rows of the components and environments within this binding.

    The caller filters by the applications of the binding, because not all models have this column.
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
    """Return the ids of the entries with one query, or the query itself if there are too many.

    With the ids, an index finds the rows that belong to the entries.
    """
    ids = entries.values_list("pk", flat=True)
    found = list(ids[: _MOST_IDS + 1])
    return found if len(found) <= _MOST_IDS else ids


def with_part_of_name(model: type[CatalogueEntry], piece: Piece) -> list[uuid.UUID] | None:
    """Return the ids of the entries whose names contain this text.

    Return None if too many entries match, or if there are too many names to search. Only searches
    for the beginning of a name use an index.
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

        A binding to applications requires a query for their components. The rows do not contain the
        application, because a move of a component would change many rows.
        """
        inside = inside_catalogue(self, binding)
        if binding.application_ids is not None:
            own = Component.objects.filter(application_id__in=binding.application_ids)
            inside = inside.filter(component_id__in=ids_or_query(own))
        return inside


def unconstrained_key(
    model: type[models.Model] | str, on_delete: Any = models.DO_NOTHING
) -> models.ForeignKey[Any, Any]:
    """Return a foreign key without a constraint and without an index of its own."""
    return models.ForeignKey(
        model, on_delete=on_delete, related_name="+", db_index=False, db_constraint=False
    )


class OfState(models.Model):
    """The base class of models that belong to a state."""

    state = models.ForeignKey(
        "states.State", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # Both are copied from the state, in which they never change, because an index cannot serve a
    # filter through a join. Only the foreign keys of the state have constraints.
    component = unconstrained_key(Component)
    environment = unconstrained_key(Environment)

    class Meta:
        abstract = True
