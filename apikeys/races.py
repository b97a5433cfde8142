"""Compare-and-swap: repeat a conditional write that conflicts with another writer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from apikeys.actors import Actor

P = ParamSpec("P")
R = TypeVar("R")

# An attempt fails only if another writer succeeds.
ATTEMPTS: Final = 50


class RaceLostError(Exception):
    """A conditional write that wrote nothing, because the row or the caller changed."""


def accept(_row: Any) -> None:
    """Accept every row, as the default of an action's ``check``."""


def compare_and_swap(
    defeat: Callable[[], Exception],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Repeat a function that raises ``RaceLostError``. After the last attempt, raise ``defeat()``.

    The function reads a row, applies the rules, and writes only if the row is unchanged. Before a
    repetition, the decorator refreshes the keyword argument ``actor``, and ``target`` if present.
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
