"""The names of what credentials are bound to, for forms that take them and pages that show them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html

from infra_service.api.identifiers import parse_uuid
from states.models import Application, Component, Environment
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from infra_service.admin.site import Names

_MODELS: Final[dict[str, Any]] = {
    "cluster": Cluster,
    "application": Application,
    "component": Component,
    "environment": Environment,
}
#: Clusters to choose from; another one is typed.
MOST_CLUSTERS: Final = 200
#: Of one name, so many are told apart.
_MOST_OF_A_NAME: Final = 100


def names_of(kind: str, ids: Collection[str]) -> Names:
    """Return the names of what has these ids; what has no name is left out."""
    found = _MODELS[kind].objects.filter(pk__in=ids).values_list("pk", "name")
    return {str(pk): name for pk, name in found if name}


def link(kind: str, object_id: str, names: Names) -> str:
    """Return a link with the name, or with the id where there is none."""
    label = _MODELS[kind]._meta.label_lower.replace(".", "_")
    url = reverse(f"admin:{label}_change", args=(quote(object_id),))
    if object_id in names:
        return format_html('<a href="{}">{}</a>', url, names[object_id])
    return format_html('<a class="identifier" href="{}">{}</a>', url, object_id)


def ids_of(kind: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the ids that the texts stand for, and what is wrong with the others."""
    names = [text for text in texts if parse_uuid(text) is None and "\0" not in text]
    by_name = defaultdict(list)
    rows = _MODELS[kind].objects.filter(name__in=names).order_by("name").values_list("name", "pk")
    for name, pk in rows[: _MOST_OF_A_NAME * max(len(names), 1)] if names else ():
        by_name[name].append(str(pk))
    ids, faults = [], []
    for text in texts:
        if parse_uuid(text) is not None:
            ids.append(text)
        elif len(by_name[text]) == 1:
            ids += by_name[text]
        elif by_name[text]:
            faults.append(f"There are {len(by_name[text])} {kind}s called {text}: give an id.")
        else:
            faults.append(f"There is no {kind} called {text}.")
    return ids, faults


def cluster_names() -> list[str]:
    """Return the first names of clusters."""
    return list(Cluster.objects.order_by("name").values_list("name", flat=True)[:MOST_CLUSTERS])
