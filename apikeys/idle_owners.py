"""People who have not signed on to the admin for ``OWNER_IDLE_DAYS``: their keys are refused.

Leaving a company does not end an API key. Machine accounts never sign on and are never idle.
"""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import Case, F, Q, When
from django.db.models.functions import Coalesce


def last_signed_on(owner: str = "") -> Case:
    """Return the moment at which a person signed on last, or was made; null of a machine account.

    Args:
        owner: the path to the user, such as ``created_by__``.
    """
    person = Q((f"{owner}is_staff", True)) | Q((f"{owner}last_login__isnull", False))
    moment = Coalesce(F(f"{owner}last_login"), F(f"{owner}date_joined"))
    return Case(When(person, then=moment))


def is_idle(signed_on: dt.datetime | None, now: dt.datetime) -> bool:
    """Whether keys of an owner with this ``last_signed_on`` are refused."""
    days: int = settings.OWNER_IDLE_DAYS
    return days > 0 and signed_on is not None and signed_on <= now - dt.timedelta(days=days)
