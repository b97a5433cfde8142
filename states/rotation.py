"""Re-encryption of stored documents with the first key, while the service runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from states import documents
from states.documents import Sealed
from states.models import StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet


def outdated() -> QuerySet[StateVersion]:
    """Return the versions that another key than the first encrypts."""
    return StateVersion.objects.exclude(encryption_key=next(iter(documents.keyring())))


def rotate_keys() -> Iterator[StateVersion]:
    """Re-encrypt one document at a time, each in a statement of its own, and yield its version.

    It can be stopped at any moment and continued: what is done is not found again. The decrypted
    bytes stay in memory, and the row changes only if nobody re-encrypted it meanwhile.

    Raises:
        DocumentDamaged: a document does not decrypt; those before it are done.
    """
    identifiers = outdated().order_by("pk").values_list("pk", flat=True)
    for pk in identifiers.iterator():
        version = StateVersion.objects.defer(None).filter(pk=pk).first()
        if version is None:
            continue  # pruned meanwhile
        sealed = Sealed(version.document, version.encryption_key)
        gzipped = documents.unseal(sealed, version.state_id, version.pk)
        fresh = documents.seal(gzipped, version.state_id, version.pk)
        StateVersion.objects.filter(pk=pk, encryption_key=version.encryption_key).update(
            document=fresh.payload, encryption_key=fresh.key_name
        )
        yield version
