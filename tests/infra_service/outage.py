"""A database outage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection


@contextlib.contextmanager
def database_is_gone() -> Iterator[None]:
    """Refuse every cursor for as long as the block."""

    def refuse(*_: Any) -> None:
        raise OperationalError("the server is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "cursor", refuse)
        yield
