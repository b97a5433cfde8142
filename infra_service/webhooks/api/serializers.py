"""Serializers of webhooks and their deliveries."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apikeys.api.binding_serializers import BindingSerializer
from filterlang.compiler import compile_filter
from filterlang.errors import FilterError
from infra_service.lib.api.fields import (
    FlagField,
    NameField,
    StrictSerializer,
    TextField,
    TimestampField,
    WordField,
    WordsField,
    described,
)
from infra_service.webhooks.event_types import NAMES
from infra_service.webhooks.filters import WebhookEventFilters
from infra_service.webhooks.messages import message_id
from infra_service.webhooks.models import MAX_FILTER, MAX_URL, Delivery, WebhookEndpoint


class EventFilterField(TextField):
    """A filter expression for the location of events."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            compile_filter(WebhookEventFilters, text)
        except FilterError as error:
            raise ValidationError(str(error), code="invalid") from error
        return text


@described("A webhook: a URL to which the service delivers events.")
class WebhookSerializer(StrictSerializer):
    id = serializers.UUIDField(
        read_only=True, help_text="Assigned by the service. Ids sort in the order of creation."
    )
    name = NameField(help_text="A display name, which need not be unique.")
    url = TextField(
        max_length=MAX_URL,
        help_text="An https URL. http is allowed only within WEBHOOK_NETWORKS.",
    )
    event_types = WordsField(
        NAMES,
        code="unknown_value",
        allow_empty=False,
        help_text="The subscribed event types. The caller must have the scope of each type.",
    )
    filter = EventFilterField(
        max_length=MAX_FILTER,
        required=False,
        allow_blank=True,
        help_text="A filter by the location of events. The fields are component, environment, "
        "application and cluster, and the same names with the suffix `_id`. An empty filter "
        "matches every location within the binding.",
    )
    format = WordField(
        WebhookEndpoint.Format.choices,
        required=False,
        help_text="The message format; the default is standard.",
    )
    enabled = FlagField(
        source="is_enabled",
        required=False,
        help_text="A disabled webhook receives no messages. Only an operator can enable a webhook "
        "that an operator has disabled.",
    )
    disabled_reason = serializers.CharField(
        read_only=True,
        help_text="OWNER, OPERATOR, or GONE after a response with the status 410; empty while the "
        "webhook is enabled.",
    )
    binding = BindingSerializer(
        read_only=True,
        allow_null=True,
        help_text="The binding of the creator. The service delivers only events within this "
        "binding.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null means no expiry. The default, and the latest expiry, is the creator's.",
    )
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(
        read_only=True, help_text="Time of the last change. A delivery does not count as a change."
    )


@described("The delivery of an event to a webhook.")
class DeliverySerializer(serializers.Serializer[Delivery]):
    id = serializers.IntegerField(
        read_only=True, help_text="A number that increases in the order of creation."
    )
    message_id = serializers.SerializerMethodField(
        help_text="The `webhook-id` header of all attempts."
    )
    event_type = serializers.CharField(
        source="event.type", read_only=True, help_text="A WebhookEventType, or webhook.test."
    )
    resource_id = serializers.CharField(
        read_only=True, help_text="The state, cluster, key or webhook of the event."
    )
    status = serializers.ChoiceField(
        choices=Delivery.Status.choices,
        read_only=True,
        help_text="The status. The service attempts a FAILED delivery again only if a client or "
        "operator redelivers it.",
    )
    attempts = serializers.IntegerField(
        read_only=True, help_text="Number of attempts since the creation or the last redelivery."
    )
    next_attempt_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the next attempt; null unless the delivery is WAITING.",
    )
    last_attempt_at = TimestampField(
        read_only=True, allow_null=True, help_text="Time of the last attempt, or null."
    )
    response_status = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="HTTP status of the last response; null if there was no response.",
    )
    error = serializers.CharField(
        read_only=True,
        help_text="The cause of the last failure, without the response body; otherwise empty.",
    )
    created_at = TimestampField(
        read_only=True, help_text="Time at which the service created the delivery."
    )

    def get_message_id(self, delivery: Delivery) -> str:
        return message_id(delivery.event)
