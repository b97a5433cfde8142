"""Lock owners for display, and detection of stale locks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.utils import timezone

from apikeys.runs import Run, find_token_run
from apikeys.scopes import Scope
from states.lockinfo import LockInfo, terminal_text

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from states.models import State

#: The age above which a lock is probably stale. Locks do not expire.
STALE_AFTER: Final = dt.timedelta(hours=1)


class Holder(NamedTuple):
    """The client that acquired a lock: the client's own description, and its identity.

    ``owner`` and ``token_id`` are the authenticated identity. ``door`` is the backend through which
    the client acquired the lock, or None for a lock from a release before 1.2.
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
    """Return whether an operator can write the state: it is not locked, frozen or deleted."""
    return state.lock_id is None and state.frozen_at is None and state.deleted_at is None


def holder_of(state: State) -> Holder | None:
    """Return the owner of the state's lock, or None if the state is not locked."""
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
    """Return the LockInfo of a locked state for an actor that the lock blocks.

    For callers with ``state:read``, ``Who`` also contains the token and its owner, and ``Info`` the
    pipeline run and the commit. These callers can see the same information about each version. The
    texts are safe to print. ``ID`` and ``Created`` are unchanged.
    """
    held = LockInfo(**(state.lock_info or {}))
    shown = held.printable()
    taken_by = held.described(state.lock_taken_by).get("taken_by")
    caller = actor.caller if actor else None
    if taken_by and caller is not None and Scope.STATE_READ in caller.scopes:
        token = find_token_run(taken_by["token_id"])
        named = f"token {token.name} of {taken_by['name']}" if token.name else taken_by["name"]
        who, info = terminal_text(named), terminal_text(_described(token.run))
        return msgspec.structs.replace(
            shown, Who=_joined(shown.Who, who), Info=_joined(shown.Info, info)
        )
    return shown


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def _described(run: Run) -> str:
    """Return a description of a pipeline run, or an empty string if the run is unknown."""
    parts = (
        ("pipeline run", run.url or run.id),
        ("commit", run.commit),
        ("repository", run.repository),
    )
    return _joined(*(f"{name} {value}" for name, value in parts if value))
