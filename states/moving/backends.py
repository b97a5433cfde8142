"""Backend blocks for imported states, which replace the blocks of the old backend."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from states.addresses import backend_block
from states.moving.files import fault

if TYPE_CHECKING:
    from pathlib import Path

    from states.moving.plan import Row

_CREDENTIALS: Final = (
    "# Set TF_HTTP_USERNAME to any text, and TF_HTTP_PASSWORD to a token of the service.\n"
)

#: O_NONBLOCK makes a FIFO an immediate error. The command would otherwise wait for a reader.
_NO_LINK: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)


def write_backend(directory: Path, url: str, row: Row) -> None:
    """Write the backend block of a state to ``backend.tf``, in the folder of its address.

    Raises:
        SourceError: the file cannot be written.
    """
    file = directory / row.address / "backend.tf"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, _NO_LINK, 0o666), "w") as writing:
            writing.write(_CREDENTIALS + backend_block(url.rstrip("/") + row.path))
    except OSError as error:
        raise fault(error) from error
