"""Protection of a state against replacement by a document that is not a state, unless forced.

The backend stores any JSON object as the first push to an address. However, if an error page, the
output of ``terraform show -json`` or a LockInfo replaces a state by mistake, all later plans fail.
Terraform and OpenTofu never push such documents.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from apikeys.races import RaceLostError
from states.document import foreign, sealing
from states.document.concurrency import limited_reading
from states.errors import DocumentUnreadable, InvalidDocument
from states.keeping import reading

if TYPE_CHECKING:
    import uuid

    from states.document.uploads import Upload
    from states.models import State


def check_replacement(state: State, upload: Upload) -> None:
    """Reject a document that is not a state if the current version is a state.

    The current document is read only if the new document is not a state, so other pushes need no
    additional query.

    Raises:
        InvalidDocument: the document is not a state, but the current version is.
        StorageUnavailable: the object store does not respond.
    """
    current = state.current_version_id
    if upload.head.is_state or current is None or state.deleted_at is not None:
        return
    if _is_state(current, state.pk):
        raise not_a_state(upload)


def not_a_state(upload: Upload) -> InvalidDocument:
    """Return the error for a document that is not a state."""
    with limited_reading(upload.gzipped):
        kind = foreign.describe(sealing.decompress(upload.gzipped))
    return InvalidDocument(
        f"The document looks like {kind}, so it does not replace a state. A state has a numeric "
        "`version` or `encrypted_data`, and no `backend`. To replace the state anyway, push the "
        "document with ?force=true, which requires the scope state:admin."
    )


def _is_state(version_id: uuid.UUID, state_id: uuid.UUID) -> bool:
    """Return whether a stored version is a state. An unreadable version counts as a state.

    Raises:
        RaceLostError: the version was removed, or is not visible yet.
    """
    with contextlib.suppress(DocumentUnreadable):
        stored, gzipped = reading.load(version_id, state_id)
        if stored is None:
            raise RaceLostError
        with limited_reading(gzipped):
            return sealing.read_head(sealing.decompress(gzipped)).is_state
    return True
