"""Badges that several webhook lists share."""

from __future__ import annotations

from typing import Final

from infra_service.lib.admin.badges import badge
from infra_service.webhooks.models import Delivery

_SIGNS: Final = {
    Delivery.Status.WAITING: "idle",
    Delivery.Status.DELIVERED: "ok",
    Delivery.Status.FAILED: "error",
}


def delivery_badge(status: str) -> str:
    """Return the status of a delivery as a badge."""
    known = Delivery.Status(status)
    return badge(_SIGNS[known], known.label)
