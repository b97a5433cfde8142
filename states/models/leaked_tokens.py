"""Tokens of the service that lie in documents of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

if TYPE_CHECKING:
    import datetime as dt


class LeakedToken(models.Model):
    """A token in a state, found once, as long as it works (``states.resources.leaked_tokens``).

    Of the token there is what every token has in the database, its digest. It tells a secret from
    the one that a rotation has put in its place.
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
    # Where it was found, without what is secret; empty where it is in no attribute or output.
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
