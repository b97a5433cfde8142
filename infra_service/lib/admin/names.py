"""Name inputs with suggestions (``static/admin_base/names.js``)."""

from __future__ import annotations

from typing import Any

from django.urls import reverse_lazy


def names_of(kind: str) -> dict[str, Any]:
    """Return the attributes of an input that suggests names, such as names of clusters."""
    return {"data-names": reverse_lazy("admin:names", args=(kind,))}
