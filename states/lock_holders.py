"""Holders of locks for display, and detection of stale locks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils import timezone

from states.lockinfo import LockInfo

if TYPE_CHECKING:
    from states.models import State

#: The age at which a lock is probably stale: locks do not expire.
STALE_AFTER: Final = dt.timedelta(hours=1)


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
