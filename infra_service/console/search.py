"""The search box of every admin page: a few objects of each kind that the user may view.

Each kind requires a bounded number of bounded queries: by the exact id, by an indexed prefix of the
name, and by a part of the name within the limits of ``read_page``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.db.models import Q
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst

from apikeys.identifiers import is_credential_id
from apikeys.models import AccessToken, ApiKey, User
from apikeys.token_search import find_tokens
from infra_service.lib.admin.permissions import may_view
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.bounded_pages import read_page
from infra_service.lib.database.prefixes import starts_with
from states.admin import search as state_search
from states.admin.resources import found_resources
from states.models import ResourceEntry, State
from states.models.catalogue import KINDS
from workloads.models import Cluster, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.auth.models import AnonymousUser

#: The maximum number of rows of each kind. The search reads one more to detect further matches.
SHOWN: Final = 5
#: The maximum number of characters of a search text.
MOST_TEXT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Found:
    """Matches of a kind: name, description and URL of each object, and the URL of the full list.

    For resources, a form opens the full list, which keeps the text out of URLs.
    """

    title: str
    rows: Sequence[tuple[str, str, str]]
    more_url: str
    is_found_by_form: bool


def search(text: str, user: User | AnonymousUser) -> list[Found]:
    """Return the matches by kind, or an empty list if the text contains a secret."""
    if not text or "\0" in text or contains_secret(text):
        return []
    found = []
    for model, (rows_of, describe) in _KINDS.items():
        if not may_view(user, model):
            continue
        rows = rows_of(text)
        if rows:
            found.append(_found(model, rows, describe, text))
    return found


def contains_secret(text: str) -> bool:
    """Return whether the text contains the secret of a key or token."""
    return bool(find_tokens(text.encode(errors="replace")))


def _found(model: Any, rows: list[Any], describe: Callable[[Any], str], text: str) -> Found:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    more = f"{reverse(f'{name}_changelist')}?{urlencode({'q': text})}"
    return Found(
        title=capfirst(str(model._meta.verbose_name_plural)),
        rows=[
            (_name(row), describe(row), reverse(f"{name}_change", args=(quote(row.pk),)))
            for row in rows[:SHOWN]
        ],
        more_url=more if len(rows) > SHOWN else "",
        is_found_by_form=model is ResourceEntry,
    )


def _name(row: Any) -> str:
    return str(getattr(row, "address", "") or getattr(row, "name", "") or row)


def _by_name(rows: Any, text: str, key: Sequence[str]) -> list[Any]:
    """Return the rows with this id, or with this prefix or part of the name, in that order."""
    if (pk := parse_uuid(text)) is not None:
        return list(rows.filter(pk=pk))
    beginning = rows.filter(starts_with(rows.model, "name", text)).order_by(*key)
    found = {row.pk: row for row in beginning[: SHOWN + 1]}
    if len(found) <= SHOWN:
        parts = rows.filter(name__icontains=text)
        page = read_page(parts, key=key, position=None, size=SHOWN + 1)
        found |= {row.pk: row for row in page.rows if row.pk not in found}
    return list(found.values())[: SHOWN + 1]


def _states(text: str) -> list[State]:
    condition = state_search.search(text).condition
    states = State.objects.visible().filter(condition)
    around = ("component", "environment", "application")
    page = read_page(states.prefetch_related(*around), key=("id",), position=None, size=SHOWN + 1)
    return list(page.rows)


def _resources(text: str) -> list[ResourceEntry]:
    around = ("state__component", "state__environment")
    resources = ResourceEntry.objects.prefetch_related(*around)
    return list(found_resources(resources, text, size=SHOWN + 1)[0])


def _workloads(text: str) -> list[Workload]:
    """Return the workloads with this name, ``namespace/name``, or prefix of the name."""
    workloads = Workload.objects.select_related("cluster")
    namespace, slash, name = text.rpartition("/")
    named = starts_with(Workload, "name", name)
    if slash:
        named &= Q(namespace=namespace.rpartition("/")[2])
    found = workloads.filter(named).order_by("name", "health_status", "cluster", "namespace")
    return list(found[: SHOWN + 1]) if name else []


def _credentials(model: Any, text: str) -> list[Any]:
    rows = model.objects.defer("digest").select_related("created_by")
    if is_credential_id(text):
        return list(rows.filter(pk=text))
    page = read_page(rows.filter(name__icontains=text), key=("-id",), position=None, size=SHOWN + 1)
    return list(page.rows)


def _people(text: str) -> list[User]:
    found = User.objects.filter(starts_with(User, "username", text))
    return list(found.order_by("username")[: SHOWN + 1])


def _entries(model: Any, text: str) -> list[Any]:
    return _by_name(model.objects.all(), text, ("name", "id"))


def _nothing(_row: Any) -> str:
    return ""


def _parent(row: Any) -> str:
    return f"of {row.application}" if getattr(row, "application_id", None) else ""


def _owner(row: Any) -> str:
    return f"of {row.created_by}"


_KINDS: Final[dict[Any, tuple[Callable[[str], list[Any]], Callable[[Any], str]]]] = {
    State: (_states, lambda state: str(state.application or "")),
    ResourceEntry: (_resources, lambda entry: f"in {entry.state}"),
    **{model: (partial(_entries, model), _parent) for model in KINDS.values()},
    Workload: (_workloads, lambda one: f"{one.kind} in {one.namespace}, {one.cluster.name}"),
    Cluster: (lambda text: _by_name(Cluster.objects.all(), text, ("name",)), _nothing),
    ApiKey: (partial(_credentials, ApiKey), _owner),
    AccessToken: (partial(_credentials, AccessToken), _owner),
    User: (_people, _nothing),
}
