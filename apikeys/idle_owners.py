"""Detection of idle owners, who have not signed on to the admin for ``OWNER_IDLE_DAYS``.

The service rejects their keys, because a key can outlive the employment of its owner. Machine
accounts never sign on and are never idle.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import LessThanOrEqual


def signed_on_last(before: Any, owner: str = "") -> Q:
    """Return the condition that a person last signed on, or was created, no later than ``before``.

    Args:
        before: the moment, or a parameter of a compiled statement. Null matches no person.
        owner: the path to the user, such as ``created_by__``.
    """
    person = Q((f"{owner}is_staff", True)) | Q((f"{owner}last_login__isnull", False))
    moment = Coalesce(F(f"{owner}last_login"), F(f"{owner}date_joined"))
    return person & Q(LessThanOrEqual(moment, before))


def idle_before(now: dt.datetime) -> dt.datetime | None:
    """Return the latest sign-on time at which an owner is idle; None if there is no limit."""
    days: int = settings.OWNER_IDLE_DAYS
    return now - dt.timedelta(days=days) if days > 0 else None
