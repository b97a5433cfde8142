"""Webhook endpoints, published events, and their deliveries."""

from infra_service.webhooks.models.deliveries import (
    DISABLED,
    LATE_AFTER,
    MAX_ERROR,
    Delivery,
    DeliveryQuerySet,
)
from infra_service.webhooks.models.endpoints import (
    BOTH_SIGN,
    BY_OPERATOR,
    MAX_ENDPOINTS,
    MAX_FILTER,
    MAX_URL,
    DisabledPeriod,
    WebhookEndpoint,
    WebhookEndpointQuerySet,
    origin_of,
)
from infra_service.webhooks.models.events import WebhookEvent
from infra_service.webhooks.models.positions import HealthPosition, TrailPosition

__all__ = [
    "BOTH_SIGN",
    "BY_OPERATOR",
    "DISABLED",
    "LATE_AFTER",
    "MAX_ENDPOINTS",
    "MAX_ERROR",
    "MAX_FILTER",
    "MAX_URL",
    "Delivery",
    "DeliveryQuerySet",
    "DisabledPeriod",
    "HealthPosition",
    "TrailPosition",
    "WebhookEndpoint",
    "WebhookEndpointQuerySet",
    "WebhookEvent",
    "origin_of",
]
