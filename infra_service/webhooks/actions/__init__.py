"""Actions on webhooks: atomic functions with keyword-only arguments."""

from infra_service.webhooks.actions.deliveries import redeliver, send_test
from infra_service.webhooks.actions.endpoints import (
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    disable_endpoint,
    enable_endpoint,
    reencrypt_secrets,
    rotate_secret,
)

__all__ = [
    "change_endpoint",
    "create_endpoint",
    "delete_endpoint",
    "disable_endpoint",
    "enable_endpoint",
    "redeliver",
    "reencrypt_secrets",
    "rotate_secret",
    "send_test",
]
