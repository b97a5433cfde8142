"""The ids in the bindings of keys, tokens, trust policies and webhooks."""

from __future__ import annotations

import uuid

from django.apps import apps
from django.db.models import Q
from django.utils import timezone

from apikeys.bindings import LISTS
from apikeys.models.grant_holder import GrantHolder


def bound_ids() -> set[uuid.UUID]:
    """Return the ids of components, environments and applications in unexpired bindings.

    Tokens of the same key share their lists, so the queries return few distinct lists.
    """
    unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    found: set[uuid.UUID] = set()
    for model in apps.get_models():
        if not issubclass(model, GrantHolder):
            continue
        for name in LISTS:
            column = f"bound_{name}"
            lists = model._base_manager.filter(unexpired, (f"{column}__isnull", False))
            for ids in lists.order_by().values_list(column, flat=True).distinct().iterator():
                found.update(map(uuid.UUID, ids))
    return found
