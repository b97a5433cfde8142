"""Races between writers are decided by conditional writes; the loser judges the new state."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from infra_service.lib.database.retries import retrying
from states.errors import WriteConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from apikeys.actors import Actor
    from states.targets import StateTarget

P = ParamSpec("P")
R = TypeVar("R")

# An attempt is lost only to another writer's success.
ATTEMPTS: Final = 50


class RaceLostError(Exception):
    """The state or the caller changed after it was read; nothing was written."""


def compare_and_swap(attempt: Callable[P, R]) -> Callable[P, R]:
    """Repeat an attempt that raises ``RaceLostError``, with the actor as it is then.

    The attempt reads the state, applies the rules and writes under the condition that the state is
    as it was read. It takes the keyword ``actor``, and ``target`` if it has one.

    Raises:
        WriteConflict: every attempt lost.
    """

    @retrying
    @functools.wraps(attempt)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = kwargs
        target: StateTarget | None = given.get("target")
        for _ in range(ATTEMPTS):
            try:
                return attempt(*args, **kwargs)
            except RaceLostError:
                actor: Actor = given["actor"]
                given["actor"] = actor.refresh() if target is None else target.refresh(actor)
        raise WriteConflict

    return repeated
