"""The message for an event: body and headers of the Standard Webhooks specification."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING, Any, Final

from infra_service.webhooks.models import WebhookEndpoint
from infra_service.webhooks.ocsf import ocsf_message
from infra_service.webhooks.secrets import sign
from infra_service.webhooks.slack import slack_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra_service.webhooks.models import WebhookEvent


def message_id(event: WebhookEvent) -> str:
    """Return the message id, which stays the same for all attempts."""
    return f"msg_{event.pk.hex}"


def written(moment: dt.datetime) -> str:
    """Return a time in the format of messages."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def message(endpoint: WebhookEndpoint, event: WebhookEvent) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body, signed for the endpoint at the current time.

    Raises:
        SecretUnreadableError: the endpoint's secret cannot be decrypted.
    """
    body = json.dumps(_FORMATS[endpoint.format](event), separators=(",", ":")).encode()
    name, timestamp = message_id(event), int(time.time())
    signatures = [sign(secret, name, timestamp, body) for secret in endpoint.signing_secrets()]
    headers = {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
    return headers, body


def _standard(event: WebhookEvent) -> dict[str, Any]:
    return {
        "type": event.type,
        "timestamp": written(event.occurred_at),
        "data": event.data,
    }


_FORMATS: Final[dict[str, Callable[[WebhookEvent], dict[str, Any]]]] = {
    WebhookEndpoint.Format.STANDARD: _standard,
    WebhookEndpoint.Format.SLACK: slack_message,
    WebhookEndpoint.Format.OCSF: ocsf_message,
}
