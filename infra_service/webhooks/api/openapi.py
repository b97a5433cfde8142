"""The OpenAPI description of webhooks."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers

from apikeys.errors import GrantExceeded, SecretRetired
from infra_service.lib.api.openapi_words import (
    EMPTY,
    NO_STORE,
    answer_example,
    error_docs,
    list_schema,
    request_example,
    resource_schema,
    wrapped,
)
from infra_service.webhooks.api.serializers import DeliverySerializer, WebhookSerializer
from infra_service.webhooks.errors import (
    DeliveryNotFound,
    TooManyWebhooks,
    WebhookDisabled,
    WebhookDisabledByOperator,
    WebhookNotFound,
)

WEBHOOK: Final[dict[str, Any]] = {
    "id": "0193f1c2-6f0a-7c1e-9d51-3a2b4c5d6e7f",
    "name": "deployments to chat",
    "url": "https://hooks.example.com/infra",
    "event_types": ["state.push", "state.force_unlock"],
    "filter": "field['environment'] = 'production'",
    "format": "standard",
    "enabled": True,
    "disabled_reason": "",
    "binding": None,
    "expires_at": None,
    "created_at": "2026-11-23T08:00:00.000000Z",
    "updated_at": "2026-11-23T08:00:00.000000Z",
}
DELIVERY: Final[dict[str, Any]] = {
    "id": 1042,
    "message_id": "msg_0193f1c27a117d3e8f000c9d8e7f6a5b",
    "event_type": "state.push",
    "resource_id": "0193f1b0-1111-7000-8000-000000000001",
    "status": "DELIVERED",
    "attempts": 1,
    "next_attempt_at": None,
    "last_attempt_at": "2026-11-23T08:00:02.000000Z",
    "response_status": 204,
    "error": "",
    "created_at": "2026-11-23T08:00:01.000000Z",
}
_WAITING: Final = {
    **DELIVERY,
    "status": "WAITING",
    "attempts": 0,
    "next_attempt_at": "2026-11-23T08:00:01.000000Z",
    "last_attempt_at": None,
    "response_status": None,
}
_NEW: Final = {
    **{name: WEBHOOK[name] for name in ("url", "event_types", "filter")}, "name": "example"
}  # fmt: skip
_SECRET: Final = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # noqa: S105 - an example
_WITH_SECRET: Final = wrapped(
    "WebhookAndSecret",
    "webhook",
    WebhookSerializer,
    secret=serializers.CharField(help_text="The signing secret, shown only in this response."),
)
_DELIVERY: Final = wrapped("DeliveryAnswer", "delivery", DeliverySerializer)
_WEBHOOK_ID: Final = OpenApiParameter(
    "webhook_id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The id of the webhook."
)
_DELIVERY_ID: Final = OpenApiParameter(
    "delivery_id", int, OpenApiParameter.PATH, description="The id of the delivery."
)
_SHOWN_SECRET: Final = answer_example({"webhook": WEBHOOK, "secret": _SECRET})

webhooks_schema = resource_schema(
    "webhook",
    "The caller's own webhooks within the caller's binding.",
    WebhookSerializer,
    WEBHOOK,
    change_errors=(GrantExceeded, SecretRetired, WebhookDisabledByOperator),
    create=extend_schema(
        operation_id="create_webhook",
        parameters=[NO_STORE],
        request=wrapped("CreateWebhook", "webhook", WebhookSerializer),
        responses={201: _WITH_SECRET, **error_docs(GrantExceeded, SecretRetired, TooManyWebhooks)},
        examples=[request_example({"webhook": _NEW}), _SHOWN_SECRET],
    ),
    destroy=extend_schema(
        operation_id="delete_webhook", responses={204: EMPTY, **error_docs(SecretRetired)}
    ),
    test=extend_schema(
        operation_id="test_webhook",
        request=None,
        responses={
            200: _DELIVERY,
            **error_docs(WebhookDisabled, WebhookDisabledByOperator, SecretRetired),
        },
        examples=[answer_example({"delivery": {**_WAITING, "event_type": "webhook.test"}})],
    ),
    rotate_secret=extend_schema(
        operation_id="rotate_webhook_secret",
        parameters=[NO_STORE],
        request=None,
        responses={200: _WITH_SECRET, **error_docs(GrantExceeded, SecretRetired)},
        examples=[_SHOWN_SECRET],
    ),
)

deliveries_schema = extend_schema_view(
    list=list_schema(
        "delivery",
        "The deliveries of a webhook, newest first.",
        DELIVERY,
        plural="deliveries",
        parameters=[_WEBHOOK_ID],
        responses={200: DeliverySerializer(many=True), **error_docs(WebhookNotFound)},
    ),
    redeliver=extend_schema(
        operation_id="redeliver",
        parameters=[_WEBHOOK_ID, _DELIVERY_ID],
        request=None,
        responses={
            200: _DELIVERY,
            **error_docs(
                WebhookDisabled,
                WebhookDisabledByOperator,
                WebhookNotFound,
                DeliveryNotFound,
                SecretRetired,
            ),
        },
        examples=[answer_example({"delivery": _WAITING})],
    ),
)
