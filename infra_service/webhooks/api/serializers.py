"""Webhook endpoints and deliveries in requests and responses."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apikeys.api.binding_serializers import BindingSerializer
from filterlang.compiler import compile_filter
from filterlang.errors import FilterError
from infra_service.lib.api.fields import (
    FlagField,
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
    """A filter expression for the place of events."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            compile_filter(WebhookEventFilters, text)
        except FilterError as error:
            raise ValidationError(str(error), code="invalid") from error
        return text


@described("A webhook: an address to which the service sends events.")
class WebhookSerializer(StrictSerializer):
    id = serializers.UUIDField(
        read_only=True, help_text="Assigned by the service, in the order of creation."
    )
    name = TextField(max_length=200, help_text="A display name; it need not be unique.")
    url = TextField(
        max_length=MAX_URL,
        help_text="An https address; http is allowed only within WEBHOOK_NETWORKS.",
    )
    event_types = WordsField(
        NAMES,
        code="unknown_value",
        allow_empty=False,
        help_text="The subscribed event types; the caller needs the scope of each.",
    )
    filter = EventFilterField(
        max_length=MAX_FILTER,
        required=False,
        allow_blank=True,
        help_text="The location of the events: component, environment, application, cluster, each "
        "also with `_id`. Empty matches every location within the binding.",
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
        help_text="OWNER, OPERATOR, or GONE after a response with the status 410; empty while "
        "enabled.",
    )
    binding = BindingSerializer(
        read_only=True,
        allow_null=True,
        help_text="The binding of its creator. Events outside of it are not delivered.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null means no expiry. The expiry is never later than that of the creator.",
    )
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(
        read_only=True, help_text="Time of the last change, not of the last delivery."
    )


@described("The delivery of an event to a webhook.")
class DeliverySerializer(serializers.Serializer[Delivery]):
    id = serializers.IntegerField(
        read_only=True, help_text="A number, larger for a later event of the audit log."
    )
    message_id = serializers.SerializerMethodField(
        help_text="The header webhook-id of all its attempts."
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
        help_text="The status; a FAILED delivery is only sent again by a redelivery.",
    )
    attempts = serializers.IntegerField(
        read_only=True, help_text="Number of attempts since the delivery or its redelivery."
    )
    next_attempt_at = TimestampField(
        read_only=True, allow_null=True, help_text="Time of the next attempt; null unless WAITING."
    )
    last_attempt_at = TimestampField(
        read_only=True, allow_null=True, help_text="Time of the last attempt, or null."
    )
    response_status = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="HTTP status of the last response; null without a response.",
    )
    error = serializers.CharField(
        read_only=True,
        help_text="The cause of the last failure, without the response's body; else empty.",
    )
    created_at = TimestampField(
        read_only=True, help_text="Time at which the event was read from the audit log."
    )

    def get_message_id(self, delivery: Delivery) -> str:
        return message_id(delivery.event)
