"""Fields in which a name is typed, and offered meanwhile (``static/admin_base/names.js``)."""

from __future__ import annotations

from typing import Any

from django.urls import reverse_lazy


def names_of(kind: str) -> dict[str, Any]:
    """Return the attributes of a field that offers the names of clusters, components or so."""
    return {"data-names": reverse_lazy("admin:names", args=(kind,))}
