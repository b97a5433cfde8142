"""The binding's restriction to clusters, for each table that belongs to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from apikeys.bindings import Binding

Rows = TypeVar("Rows", bound="QuerySet[Any]")


def inside_clusters(rows: Rows, binding: Binding, column: str) -> Rows:
    """Return the rows of clusters inside the binding; the column names the cluster."""
    if any(ids is not None for ids in binding.lists.values()):
        return rows.none()
    return rows.all() if binding.cluster_id is None else rows.filter((column, binding.cluster_id))
