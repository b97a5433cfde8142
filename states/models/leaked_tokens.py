"""Keys and tokens of this service that were found in state documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from infra_service.lib.uuids import uuid7
from states.models.of_state import unconstrained_key

if TYPE_CHECKING:
    import datetime as dt


class LeakedToken(models.Model):
    """A working key or token that was found in a state (``states.resources.leaked_tokens``).

    The database stores only the digest of a secret. The digest distinguishes a secret from its
    replacement in a rotation.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Without a constraint in the database, because an older release without this table also purges
    # states.
    state = unconstrained_key("states.State", models.CASCADE)
    digest = models.BinaryField(max_length=32)
    # The address in the document, without secrets; empty outside of attributes and outputs.
    address = models.TextField(blank=True)
    version_number = models.PositiveIntegerField()
    found_at: models.DateTimeField[dt.datetime, dt.datetime] = models.DateTimeField(
        default=timezone.now
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="leakedtoken_once", fields=["state", "digest"]),
        ]

    def __str__(self) -> str:
        return self.address
