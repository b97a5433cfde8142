"""Template context of a state's page: lock, backend block, versions, contents and dependencies."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from rest_framework.exceptions import APIException

from apikeys.bindings import EVERYWHERE
from apikeys.credential_names import credential_names
from states import addresses
from states.admin.values import decoded, json_text
from states.dependencies import dependencies_of
from states.document import contents
from states.errors import VersionNotFound
from states.keeping import reading
from states.lock_holders import holder_of
from states.models import StateVersion
from states.models.imported_versions import with_imported
from states.targets import StateTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from states.models import State

#: Maximum versions per page, and in the chart.
VERSIONS: Final = 100
#: Maximum versions with changes on the page, and maximum bytes of their documents. Each request for
#: the page reads and compares these documents.
COMPARED: Final = 20
COMPARED_BYTES: Final = 512 * 1024
#: Maximum dependencies on the page, in both directions together.
DEPENDENCIES: Final = 50
#: Maximum outputs and resources on the page. A document larger than ``READ_BYTES`` is read only on
#: request.
ITEMS: Final = 100
READ_BYTES: Final = 512 * 1024
# The address of a provider in a public registry; the group is the common name.
_PROVIDER: Final = re.compile(r'provider\["registry\.(?:terraform|opentofu)\.(?:io|org)/([^"]+)"\]')
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def lock_of(state: State, request: HttpRequest) -> dict[str, Any]:
    """Return the owner of the lock, and the token's name if the user may view tokens."""
    holder = holder_of(state)
    token_id = holder.token_id if holder else None
    names = credential_names(request.user, [token_id]) if token_id else {}
    return {"holder": holder, "holder_token": names.get(token_id or "")}


def backend_of(state: State, request: HttpRequest) -> dict[str, Any]:
    """Return the backend block, and the backend's address by names and by ids, if different."""
    ids = {name: str(value) for name, value in StateTarget.of(state).ids.items()}
    paths = dict.fromkeys((addresses.path_of(state), reverse("state-backend", kwargs=ids)))
    address, *others = map(request.build_absolute_uri, paths)
    return {
        "address": address,
        "address_by_ids": next(iter(others), None),
        "backend_block": addresses.backend_block(address),
    }


def history_of(state: State, before: str, request: HttpRequest) -> dict[str, Any]:
    """Return a page of the versions, newest first, and their sizes, oldest first.

    The names of the tokens that wrote the versions require permission to view tokens.
    """
    versions = with_imported(StateVersion.objects.filter(state=state)).order_by("-number")
    if _NUMBER.fullmatch(before):
        versions = versions.filter(number__lt=int(before))
    found = list(versions[: VERSIONS + 1])
    # Each version with its previous version; the first version has none.
    pairs = list(zip_longest(found, found[1:]))[:VERSIONS]
    shown = [version for version, _ in pairs]
    changes = _changes(state, found)
    names = credential_names(request.user, (version.token_id for version in shown))
    return {
        "versions": [
            (version, earlier, changes.get(version.number), names.get(version.token_id))
            for version, earlier in pairs
        ],
        "newest": shown[0] if shown else None,
        "oldest": shown[-1] if shown else None,
        "older_versions": shown[-1].number if len(found) > VERSIONS else None,
        "sizes": [(f"version {v.number}", v.size_bytes) for v in reversed(shown)],
    }


def _changes(state: State, versions: Sequence[StateVersion]) -> dict[int, Any]:
    """Return the changes by version number, for the newest of these versions within the limits."""
    chosen: list[int] = []
    left = COMPARED_BYTES
    for version in versions[: COMPARED + 1]:
        left -= version.size_bytes
        if left < 0 or version.object_name:
            break
        chosen.append(version.number)
    if not chosen:
        return {}
    documents = reading.find_small(state_id=state.pk, numbers=chosen)
    oldest_first = chosen[::-1]
    # The changes of version 1 are its whole content.
    before = [b""] if oldest_first[:1] == [1] else []
    described = oldest_first[1 - len(before) :]
    found = contents.summaries([*before, *map(documents.get, oldest_first)])
    return dict(zip(described, found, strict=True))


def contents_of(state: State, *, is_requested: bool) -> dict[str, Any]:
    """Return the outputs and resources of the current version.

    A large document is read only on request. The audit log does not record this read, or the reads
    for the list of changes. Sensitive values are hidden, and a user may only want to check the
    lock. The linked pages record their reads.
    """
    if state.size_bytes is None:
        return {}
    if state.size_bytes > READ_BYTES and not is_requested:
        return {"contents_large": True}
    try:
        stored, gzipped = reading.find_version(state_id=state.pk, number=state.version_number)
        if stored is None:
            raise VersionNotFound
        found = contents.overview(gzipped, size=ITEMS, hide=True)
        outputs, resources = decoded(found.outputs.items), decoded(found.resources.items)
    except APIException as error:
        return {"contents_fault": str(error.detail)}
    return {
        "terraform_version": found.terraform_version,
        "outputs": [
            {**output, "value": json_text(output["value"]), "type": _type_text(output["type"])}
            for output in outputs
        ],
        "more_outputs": found.outputs.more,
        "resources": [{**r, "provider": _short(r["provider"])} for r in resources],
        "more_resources": found.resources.more,
    }


def index_of(state: State, request: HttpRequest) -> dict[str, Any]:
    """Return the URL of the state's resources in the index, and whether the user may view them."""
    listed = reverse("admin:states_resourceentry_changelist")
    return {
        "resources_url": f"{listed}?state={state.pk}",
        "may_list_resources": request.user.has_perm("states.view_resourceentry"),
    }


def _type_text(kind: Any) -> str:
    """Return the type as in a state: a name, or JSON for a composite type."""
    return kind if isinstance(kind, str) else json_text(kind)


def related_to(state: State) -> dict[str, Any]:
    """Return the states that the state reads, and the states that read the state."""
    found = dependencies_of(state, EVERYWHERE, size=DEPENDENCIES)
    return {
        "reads": found.reads,
        "read_by": found.read_by,
        "more_dependencies": found.position is not None,
    }


def _short(provider: str) -> str:
    found = _PROVIDER.fullmatch(provider)
    return found[1] if found else provider
