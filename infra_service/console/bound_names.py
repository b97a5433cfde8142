"""Lookups between names and ids of clusters and catalogue objects, for admin forms and pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from django.utils.html import format_html

from infra_service.lib.admin.permissions import may_view
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.bounded_pages import read_page
from states.models.catalogue import KINDS
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from infra_service.lib.admin.site import Names

_MODELS: Final[dict[str, Any]] = {"cluster": Cluster, **KINDS}
#: The maximum number of suggestions while a user types.
MOST_OFFERED: Final = 20
#: The maximum number of objects per name that a lookup reads.
_MOST_OF_A_NAME: Final = 100


def names_of(kind: str, ids: Collection[str], user: Any) -> Names:
    """Return the names of the objects with these ids, if the user may view objects of this kind.

    Objects without a name are omitted.
    """
    if not may_view(user, _MODELS[kind]):
        return {}
    found = _MODELS[kind].objects.filter(pk__in=ids).values_list("pk", "name")
    return {str(pk): name for pk, name in found if name}


def link(kind: str, object_id: str, names: Names) -> str:
    """Return a link with the name, or with the id if the name is unknown."""
    label = _MODELS[kind]._meta.label_lower.replace(".", "_")
    url = reverse(f"admin:{label}_change", args=(quote(object_id),))
    if object_id in names:
        return format_html('<a href="{}">{}</a>', url, names[object_id])
    return format_html('<a class="identifier" href="{}">{}</a>', url, object_id)


def ids_of(kind: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the ids for names or ids, and an error message for each invalid text."""
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
            faults.append(f"There are {len(by_name[text])} {kind}s named {text}: enter an id.")
        else:
            faults.append(f"There is no {kind} named {text}.")
    return ids, faults


def offered(kind: str, text: str, user: Any) -> list[dict[str, str]]:
    """Return the matching names that the user may view, prefix matches first.

    Each suggestion has a ``label`` and a ``value``, which is the id if the name is not unique.

    Raises:
        Http404: the kind does not exist.
        PermissionDenied: the user may not view objects of this kind.
    """
    if kind not in _MODELS:
        raise Http404
    model = _MODELS[kind]
    if not may_view(user, model):
        raise PermissionDenied
    if not text or "\0" in text:
        return []
    beginning = model.objects.filter(name__startswith=text).order_by(*_key(model))[:MOST_OFFERED]
    # read_page bounds the search within names, so it never reads a whole table.
    pieces = read_page(
        model.objects.filter(name__icontains=text),
        key=_key(model),
        position=None,
        size=MOST_OFFERED,
    )
    found = {row.pk: row for row in (*beginning, *pieces.rows)}
    rows = list(found.values())[:MOST_OFFERED]
    several = _shared({row.name for row in rows}, model)
    return [
        {"value": str(row.pk), "label": f"{row.name}, {_parent(row)}"}
        if row.name in several
        else {"value": row.name, "label": row.name}
        for row in rows
    ]


def _key(model: Any) -> tuple[str, ...]:
    return ("name",) if model is Cluster else ("name", "id")


def _shared(names: set[str], model: Any) -> set[str]:
    """Return the names that are not unique."""
    rows = model.objects.filter(name__in=names).order_by("name").values_list("name", flat=True)
    counts = Counter(rows[: _MOST_OF_A_NAME * max(len(names), 1)])
    return {name for name, count in counts.items() if count > 1}


def _parent(row: Any) -> str:
    application = getattr(row, "application", None)
    return f"of {application}" if application else f"id {row.pk}"
