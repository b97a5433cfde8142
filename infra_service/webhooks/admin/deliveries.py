"""Deliveries in the admin: list, inspect and redeliver."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from apikeys.models import AuditEvent
from infra_service.lib.admin import ReadOnlyAdmin, object_tool
from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.input_filters import InputFilter
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.templatetags.charts import identifier
from infra_service.webhooks import actions
from infra_service.webhooks.messages import message_id
from infra_service.webhooks.models import Delivery, WebhookEndpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.actors import Actor
    from infra_service.webhooks.models import DeliveryQuerySet


#: The filter lists the deliveries of at most this many webhooks that share a name.
_NAMESAKES: Final = 20
_SIGNS: Final = {
    Delivery.Status.WAITING: "idle",
    Delivery.Status.DELIVERED: "ok",
    Delivery.Status.FAILED: "error",
}


def delivery_badge(status: str) -> str:
    """Return the status of a delivery as a badge."""
    known = Delivery.Status(status)
    return badge(_SIGNS[known], known.label)


class StatusFilter(admin.SimpleListFilter):
    """A filter by the delivery status."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        late = ("late", "Waiting for over an hour")
        return [*((value, str(label)) for value, label in Delivery.Status.choices), late]

    def queryset(self, _request: HttpRequest, queryset: Any) -> Any:
        deliveries: DeliveryQuerySet = queryset
        if self.value() == "late":
            return deliveries.late()
        if self.value() in Delivery.Status.values:
            return deliveries.filter(status=self.value())
        return deliveries


class EndpointFilter(InputFilter):
    """A filter by the id or the name of a webhook. Several webhooks can have the same name."""

    title = "webhook"
    parameter_name = "endpoint"

    def typed(self, queryset: QuerySet[Any], text: str, request: HttpRequest) -> QuerySet[Any]:
        del request
        try:
            return queryset.filter(endpoint=uuid.UUID(text))
        except ValueError:
            named = WebhookEndpoint.objects.filter(name__iexact=text).values_list("pk", flat=True)
            return queryset.filter(endpoint__in=list(named[:_NAMESAKES]))


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    """The list of deliveries, newest first."""

    when_empty = "Deliveries of subscribed events appear here while manage.py deliver_events runs."
    list_display = (
        "made", "event_type", "about", "webhook", "shown_status", "attempts", "next_attempt",
        "error",
    )  # fmt: skip
    orders: ClassVar[Any] = {"made": ("id",)}
    opening_order = "-made"
    list_filter = (StatusFilter, EndpointFilter)
    search_fields = ("event",)
    search_help_text = "A message's webhook-id, which the receiver's log may contain."
    fields = (
        "shown_status", "error", "response_status", "attempts", "last_attempt", "next_attempt",
        "webhook", "event_type", "about", "made", "message", "id",
    )  # fmt: skip
    tools = ("redeliver",)
    made = moment_of("created_at", "created")
    next_attempt = moment_of("next_attempt_at", "next attempt")
    last_attempt = moment_of("last_attempt_at", "last attempt")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        deliveries: Any = super().get_queryset(request)
        found: DeliveryQuerySet = deliveries.for_display()
        return found

    def heading(self, obj: Delivery) -> str:
        """Return the event type and the receiver."""
        return f"{obj.event.type} to {obj.endpoint.name}"

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Find deliveries by the exact message id."""
        try:
            return queryset.filter(event=uuid.UUID(term.removeprefix("msg_")))
        except ValueError:
            return queryset.none()

    def prepare_object(self, request: HttpRequest, obj: Delivery) -> None:
        """Look up the name of the event's resource."""
        self.prepare_page(request, [obj])

    def prepare_page(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Look up the resources that the user may view. The event type starts with their kind."""
        events = [AuditEvent(action=row.event.type, resource_id=row.resource_id) for row in rows]
        named = self.admin_site.resources_of(events, request.user)
        for row in rows:
            key = (row.event.type.partition(".")[0], row.resource_id)
            row.resource = named.get(key, ("", ""))

    @admin.display(description="event")
    def event_type(self, delivery: Delivery) -> str:
        return delivery.event.type

    @admin.display(description="object")
    def about(self, delivery: Any) -> str:
        """Return the name of the event's resource with a link, or the id if it has no page."""
        name, url = delivery.resource
        if not url:
            return identifier(delivery.resource_id)
        return format_html('<a href="{}">{}</a>', url, name)

    @admin.display(description="webhook")
    def webhook(self, delivery: Delivery) -> str:
        url = reverse("admin:webhooks_webhookendpoint_change", args=(delivery.endpoint_id,))
        return format_html('<a href="{}">{}</a>', url, delivery.endpoint.name)

    @admin.display(description="webhook-id")
    def message(self, delivery: Delivery) -> str:
        """Return the message id, which the receiver's logs may contain."""
        return format_html('<span class="identifier">{}</span>', message_id(delivery.event))

    @admin.display(description="status")
    def shown_status(self, delivery: Delivery) -> str:
        return delivery_badge(delivery.status)

    @object_tool(
        label="Redeliver",
        permission="webhooks.change_webhookendpoint",
        question="The service sends the message again, with the same webhook-id and the full "
        "number of attempts. A receiver that deduplicates by id processes the message only once.",
        offered=lambda delivery: delivery.endpoint.is_enabled,
    )
    def redeliver(self, obj: Delivery, actor: Actor) -> str:
        actions.redeliver(delivery=obj, actor=actor)
        return "The message is queued for redelivery."
