"""Holders of locks for display, and detection of stale locks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils import timezone

from apikeys.runs import Run, find_token_run
from apikeys.scopes import Scope
from states.lockinfo import LockInfo, terminal_text

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from states.models import State

#: The age at which a lock is probably stale: locks do not expire.
STALE_AFTER: Final = dt.timedelta(hours=1)


#: Characters of each of a client's texts that other clients see.
_MOST: Final = 200


class Holder(NamedTuple):
    """Information from the client, and its authenticated identity: ``owner`` with ``token_id``.

    ``door`` is the backend by which the lock was acquired; None if it is older than 1.2.
    """

    who: str
    operation: str
    terraform_version: str
    since: dt.datetime
    is_stale: bool
    owner: str | None
    token_id: str | None
    door: str | None


def is_writable(state: State) -> bool:
    """Return whether a person can write the state: no lock, freeze or deletion."""
    return state.lock_id is None and state.frozen_at is None and state.deleted_at is None


def holder_of(state: State) -> Holder | None:
    """Return the holder of the lock; None without a lock."""
    if state.lock_info is None or state.lock_acquired_at is None:
        return None
    info = LockInfo(**state.lock_info)
    taken_by = info.described(state.lock_taken_by).get("taken_by", {})
    return Holder(
        who=info.Who or "an unknown client",
        operation=info.Operation.removeprefix("OperationType").lower() or "an operation",
        terraform_version=info.Version,
        since=state.lock_acquired_at,
        is_stale=timezone.now() - state.lock_acquired_at > STALE_AFTER,
        owner=taken_by.get("name"),
        token_id=taken_by.get("token_id"),
        door=(state.lock_taken_by or {}).get("door") if taken_by else None,
    )


def lock_for(state: State, actor: Actor | None) -> LockInfo:
    """Return the lock of a locked state for an actor that it refuses.

    ``Who`` also names the token and its owner, and ``Info`` the pipeline run and the commit, for
    callers with ``state:read``, who may see the same of each version. The texts are safe to print;
    the ID and the time are as the holder sent them.
    """
    held = LockInfo(**(state.lock_info or {}))
    fields = {
        name: terminal_text(text, _MOST)
        for name, text in held.as_dict().items()
        if name not in ("ID", "Created")
    }
    taken_by = held.described(state.lock_taken_by).get("taken_by")
    caller = actor.caller if actor else None
    if taken_by and caller is not None and Scope.STATE_READ in caller.scopes:
        token = find_token_run(taken_by["token_id"])
        named = f"token {token.name} of {taken_by['name']}" if token.name else taken_by["name"]
        for name, more in (("Who", named), ("Info", _described(token.run))):
            texts = [fields[name], terminal_text(more)]
            fields[name] = ", ".join(filter(None, texts))
    return LockInfo(ID=held.ID, Created=held.Created, **fields)


def _described(run: Run) -> str:
    """Return a sentence about a pipeline run; empty if it is unknown."""
    parts = (
        ("pipeline run", run.url or run.id),
        ("commit", run.commit),
        ("repository", run.repository),
    )
    return ", ".join(f"{name} {value}" for name, value in parts if value)
