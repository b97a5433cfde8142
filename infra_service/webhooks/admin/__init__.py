"""Webhooks in the admin: endpoints and deliveries."""

from infra_service.webhooks.admin import deliveries, endpoints  # noqa: F401 - they register themselves
