"""Retry transactions after a conflict in the database."""

from __future__ import annotations

import functools
import random
import time
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.db import OperationalError, connection

from infra_service.lib.database.failures import is_repeatable

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_PAUSES: Final = (0.01, 0.03, 0.1, 0.3)


def retrying(action: Callable[P, R]) -> Callable[P, R]:
    """Decorate an action to retry it if PostgreSQL rolls it back because of a conflict.

    Within a transaction of the caller, a retry is impossible, and the error is raised.
    """

    @functools.wraps(action)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
        for pause in _PAUSES:
            try:
                return action(*args, **kwargs)
            except OperationalError as error:
                if not is_repeatable(error) or connection.in_atomic_block:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
        return action(*args, **kwargs)

    return repeated
