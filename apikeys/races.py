"""Conditional writes decide races between writers; the loser reads and validates again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from apikeys.actors import Actor

P = ParamSpec("P")
R = TypeVar("R")

# An attempt is lost only to another writer's success.
ATTEMPTS: Final = 50


class RaceLostError(Exception):
    """The row or the caller changed after it was read; nothing was written."""


def compare_and_swap(
    defeat: Callable[[], Exception],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Repeat an attempt that raises ``RaceLostError``; raise ``defeat`` if every attempt does.

    The attempt reads a row, applies the rules, and writes under the condition that the row is as it
    was read. Its keyword ``actor``, and ``target`` if it has one, are loaded again before each
    attempt.
    """

    def decorate(attempt: Callable[P, R]) -> Callable[P, R]:
        @retrying
        @functools.wraps(attempt)
        def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = kwargs
            target = given.get("target")
            for _ in range(ATTEMPTS):
                try:
                    return attempt(*args, **kwargs)
                except RaceLostError:
                    actor: Actor = given["actor"]
                    given["actor"] = actor.refresh() if target is None else target.refresh(actor)
            raise defeat()

        return repeated

    return decorate
