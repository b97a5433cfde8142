"""The identity of this installation, which its exports contain."""

from __future__ import annotations

import uuid
from typing import Final

from django.db import models
from django.db.models import Q

_ONLY: Final = 1


class Installation(models.Model):
    """The identity of this installation, in the only row of the table.

    A restored backup and a copy of the database have the same identity.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=_ONLY, editable=False)
    identity = models.UUIDField(default=uuid.uuid4)

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(name="installation_only_one", condition=Q(id=_ONLY)),
        ]

    def __str__(self) -> str:
        return str(self.identity)

    @classmethod
    def here(cls) -> uuid.UUID:
        """Return the identity of this installation."""
        return cls.objects.get_or_create(pk=_ONLY)[0].identity
