"""Create and tag workspaces of the remote backend, and check that they are empty."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from rest_framework.exceptions import APIException

from apikeys import audit
from apikeys.races import RaceLostError, compare_and_swap
from states import workspaces
from states.actions.registration import find_or_register
from states.document import contents
from states.errors import TooManyTags, WorkspaceExists, WorkspaceNotEmpty, WriteConflict
from states.keeping import reading
from states.models import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apikeys.actors import Actor
    from states.addresses import Names
    from states.targets import StateTarget

#: The record without a stored name and tags. A state with versions is a workspace without it, too.
_EMPTY: Final[dict[str, Any]] = {"tags": {}}


@compare_and_swap(WriteConflict)
def create(*, target: StateTarget, name: str, tags: Mapping[str, str], actor: Actor) -> State:
    """Create the workspace of a state. Register the state if it is missing.

    Raises:
        WorkspaceExists: the state already has a workspace. A pushed or locked state always has a
        workspace. StateNotFound: the target is outside the actor's binding. TooManyTags: the number
        of tags exceeds the maximum. WriteConflict: every attempt lost to a concurrent write.
    """
    _check_number(tags)
    state = find_or_register(target=target, actor=actor)
    is_shown = state.deleted_at is None and (state.version_number or state.lock_id)
    if is_shown or state.workspace is not None:
        raise WorkspaceExists(name)
    _write(state, workspaces.record_of(name, dict(tags)), actor, "workspace.create", name=name)
    return state


@compare_and_swap(WriteConflict)
def add_tags(*, target: StateTarget, tags: Mapping[str, str], actor: Actor) -> State:
    """Add tags to the workspace of a state, or change their values.

    Raises:
        StateNotFound: the workspace does not exist, or was deleted in the meantime.
        TooManyTags: the workspace would exceed the maximum number of tags.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = target.find_workspace(actor)
    record = state.workspace or _EMPTY
    changed = {**record, "tags": {**record["tags"], **tags}}
    _check_number(changed["tags"])
    if changed != state.workspace:
        _write(state, changed, actor, "workspace.update", tags=dict(tags))
    return state


@compare_and_swap(WriteConflict)
def keep_imported(
    *, target: StateTarget, names: Names, name: str | None, tags: Mapping[str, str], actor: Actor
) -> None:
    """Store the tags of an imported workspace, and its name if the name yields the state's slugs.

    A state that already has a workspace record stays unchanged. Invalid tags are omitted.

    Raises:
        WriteConflict: every attempt lost to a concurrent write.
    """
    is_own = (
        name is not None
        and workspaces.is_name(name)
        and workspaces.names_of(name, names.application) == names
    )
    kept = name if name is not None and is_own else workspaces.name_of(names)
    valid = ((key, value) for key, value in tags.items() if workspaces.is_tag_key(key))
    record = workspaces.record_of(kept, dict(islice(valid, workspaces.MOST_TAGS)))
    state = target.find(actor)
    if record != _EMPTY and state is not None and state.workspace is None:
        _write(state, record, actor, "workspace.create", name=kept)


def _check_number(tags: Mapping[str, str]) -> None:
    if len(tags) > workspaces.MOST_TAGS:
        raise TooManyTags


def _write(state: State, record: dict[str, Any], actor: Actor, action: str, **details: Any) -> None:
    """Change the workspace record, if the state has not changed since it was read.

    Raises:
        RaceLostError: the state changed concurrently.
    """
    with transaction.atomic():
        if not State.objects.as_seen(state).change(workspace=record):
            raise RaceLostError
        audit.authorize_and_record(actor, action, state.pk, **details)
    state.workspace = record


def check_empty(state: State) -> None:
    """Refuse to delete a workspace whose state has resources.

    Raises:
        WorkspaceNotEmpty: the state has resources, or its format is not supported.
        DocumentUnreadable, StorageUnavailable: see ``reading.find_version``.
    """
    if state.current_version_id is None:
        return
    stored, gzipped = reading.find_version(state_id=state.pk, number=state.version_number)
    if stored is None:
        raise WorkspaceNotEmpty
    try:
        page = contents.resources(gzipped, start=0, size=1, hide=True)
    except APIException as error:
        raise WorkspaceNotEmpty from error
    if bytes(page.items) != b"[]":
        raise WorkspaceNotEmpty
