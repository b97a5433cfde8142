"""Restrict rows that belong to clusters to the clusters within a binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from apikeys.bindings import Binding

Rows = TypeVar("Rows", bound="QuerySet[Any]")


def inside_clusters(rows: Rows, binding: Binding, column: str) -> Rows:
    """Return the rows of clusters within the binding. The column contains the cluster's id."""
    if binding.is_for_states:
        return rows.none()
    return rows.all() if binding.cluster_id is None else rows.filter((column, binding.cluster_id))
