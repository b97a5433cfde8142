"""Webhooks in the admin: who is told of what, and what could not be delivered."""

from infra_service.webhooks.admin import deliveries, endpoints  # noqa: F401 - they register themselves
