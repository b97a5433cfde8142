"""Tokens of the service that were found in state documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

if TYPE_CHECKING:
    import datetime as dt


class LeakedToken(models.Model):
    """A working token that was found in a state (``states.resources.leaked_tokens``).

    As everywhere in the database, only the digest of the token is stored. It distinguishes a secret
    from its replacement by a rotation.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Without a constraint in the database: a release that does not know the table purges states.
    state = models.ForeignKey(
        "states.State",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    digest = models.BinaryField(max_length=32)
    # The place, without secrets; empty if it is outside of attributes and outputs.
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
