"""The backend blocks of imported states, to be put in the place of the old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from states.addresses import backend_block
from states.moving.files import fault

if TYPE_CHECKING:
    from pathlib import Path

    from states.moving.plan import Row

_CREDENTIALS: Final = (
    "# TF_HTTP_USERNAME is any text, and TF_HTTP_PASSWORD a token of the service.\n"
)


def write_backend(directory: Path, url: str, row: Row) -> None:
    """Write the block of a state to ``backend.tf``, in folders as its address has.

    Raises:
        SourceError: the file cannot be written.
    """
    file = directory / row.address / "backend.tf"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_CREDENTIALS + backend_block(url.rstrip("/") + row.path))
    except OSError as error:
        raise fault(error) from error
