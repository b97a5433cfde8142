"""Standard error without its errors, which must not stop the work of a process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TextIO


class ErrorOutput:
    """Standard error. Lines are lost if its disk is full, its pipe is closed, or it is closed."""

    def __init__(self, file: TextIO | None) -> None:
        # Otherwise, the database or a connection would get the descriptor of standard error.
        self._file = Path(os.devnull).open("w") if file is None else file  # noqa: SIM115

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
