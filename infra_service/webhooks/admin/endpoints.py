"""Webhook endpoints in the admin: create, change, test, disable and enable them.

The admin does not load secrets. It shows a new secret once.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.db.models import OuterRef, Subquery
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from apikeys.admin.filters import DisabledFilter
from apikeys.admin.grants import BindingColumns
from apikeys.admin.issue_pages import IssuePages
from apikeys.credential_names import credential_link, credential_names
from apikeys.models import User
from infra_service.lib.admin import object_tool
from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.model_admin import BY_CREATION
from infra_service.lib.admin.templatetags.moments import relative
from infra_service.lib.admin.templatetags.words import breakable
from infra_service.webhooks import actions
from infra_service.webhooks.admin.deliveries import delivery_badge
from infra_service.webhooks.admin.forms import WebhookChangeForm, WebhookForm
from infra_service.webhooks.models import BY_OPERATOR, Delivery, WebhookEndpoint
from infra_service.webhooks.subscriptions import reaches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.actors import Actor

_WHY_DISABLED: Final = {
    "OWNER": "by its owner",
    BY_OPERATOR: "by an operator",
    "GONE": "by a 410 response of the receiver",
}


#: The columns that no page loads.
_SECRETS: Final = ("secret", "retired_secret", "encrypted_url")
#: The group operator lacks this permission, because a new URL would receive all events.
_MANAGE: Final = "webhooks.add_webhookendpoint"


def _is_disabled(endpoint: WebhookEndpoint) -> bool:
    return not endpoint.is_enabled


def _shown(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the values of the form. It shows the minute of the expiry, which is then unchanged."""
    names = ("name", "event_types", "filter", "format")
    expires_at = endpoint.expires_at
    minute = expires_at and expires_at.replace(second=0, microsecond=0)
    return {**{name: getattr(endpoint, name) for name in names}, "expires_at": minute}


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(BindingColumns, IssuePages):
    """The list of webhook endpoints, newest first."""

    when_empty = "Add a webhook here, or with the API: POST /api/v1/webhooks."
    form_class = WebhookForm
    issue_label = "Add"
    list_display = (
        "name", "owner_name", "enabled", "last_delivery", "origin", "shown_events", "created",
    )  # fmt: skip
    orders = BY_CREATION
    opening_order = "-created"
    list_filter = (DisabledFilter,)
    search_fields = ("id",)
    search_help_text = "An id, or the user name of the owner."
    fields = (
        "enabled", "last_delivery", "deliveries", "owner_name", "origin", "format",
        "shown_events", "filter", "shown_binding", "expires", "made_by", "created", "updated",
        "id",
    )  # fmt: skip
    tools = ("edit", "send_test", "rotate_secret", "disable", "enable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        """Return the endpoints with their owners, without their secrets and URLs."""
        endpoints: QuerySet[WebhookEndpoint] = super().get_queryset(request)
        return endpoints.select_related("owner").defer(*_SECRETS)

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Find webhooks by the exact id or owner, which are indexed."""
        owner = User.objects.filter(username=term).first()
        if owner is not None:
            return queryset.filter(owner=owner)
        try:
            return queryset.filter(pk=uuid.UUID(term))
        except ValueError:
            return queryset.none()

    def prepare_object(self, request: HttpRequest, obj: Any) -> None:
        """Look up the last delivery, the status, and the names of the creator's key and token."""
        super().prepare_object(request, obj)
        self._describe([obj])
        obj.names = credential_names(request.user, (obj.maker_id, obj.maker_token_id))

    def prepare_page(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Look up the last delivery and the status of each endpoint on the page."""
        super().prepare_page(request, rows)
        self._describe(rows)

    def _describe(self, rows: Sequence[Any]) -> None:
        shown = WebhookEndpoint.objects.filter(pk__in=[endpoint.pk for endpoint in rows])
        working = reaches(shown.defer(*_SECRETS))
        of_endpoint = Delivery.objects.filter(endpoint=OuterRef("pk")).order_by("-id")
        last = shown.order_by().values_list(Subquery(of_endpoint.values("pk")[:1]), flat=True)
        deliveries = {one.endpoint_id: one for one in Delivery.objects.filter(pk__in=last)}
        for endpoint in rows:
            endpoint.works = endpoint.pk in working
            endpoint.last = deliveries.get(endpoint.pk)

    @admin.display(description="owner")
    def owner_name(self, endpoint: WebhookEndpoint) -> str:
        return endpoint.owner.get_username()

    @admin.display(description="sends to")
    def origin(self, endpoint: WebhookEndpoint) -> str:
        """Return only the scheme and host, because the path of a Slack URL is a secret."""
        return breakable(endpoint.origin)

    @admin.display(description="events")
    def shown_events(self, endpoint: WebhookEndpoint) -> str:
        types = ((one,) for one in endpoint.event_types)
        return format_html_join(" ", '<code class="scope">{}</code>', types)

    @admin.display(description="enabled")
    def enabled(self, endpoint: Any) -> str:
        """Return whether the endpoint receives events, and the reason if not."""
        if endpoint.disabled_at is not None:
            reason = endpoint.disabled_reason
            why, ago = _WHY_DISABLED.get(reason, reason), relative(endpoint.disabled_at)
            return format_html("{} {}, {}", badge("idle", "Disabled"), why, ago)
        if not endpoint.works:
            why = "because it expired, or its owner or key is no longer valid"
            return format_html("{} {}", badge("idle", "Ended"), why)
        return badge("ok", "Enabled")

    @admin.display(description="last delivery")
    def last_delivery(self, endpoint: Any) -> str:
        """Return the status of the newest message with a link."""
        delivery: Delivery | None = endpoint.last
        if delivery is None:
            return "no deliveries in 30 days"
        url = reverse("admin:webhooks_delivery_change", args=(delivery.pk,))
        mark, ago = delivery_badge(delivery.status), relative(delivery.created_at)
        return format_html('{} <a href="{}">{}</a>', mark, url, ago)

    @admin.display(description="deliveries")
    def deliveries(self, endpoint: WebhookEndpoint) -> str:
        url = reverse("admin:webhooks_delivery_changelist")
        return format_html('<a href="{}?endpoint={}">View all</a>', url, endpoint.pk)

    @admin.display(description="created by")
    def made_by(self, endpoint: Any) -> str:
        """Return the key and the token that limit the endpoint's lifetime."""
        creators = [one for one in (endpoint.maker_id, endpoint.maker_token_id) if one]
        if not creators:
            return "no key: it works until it expires, as long as its owner is active"
        links = ((credential_link(one, endpoint.names),) for one in creators)
        return format_html_join(" by ", "{}", links)

    def issue(self, actor: Actor, **fields: Any) -> tuple[WebhookEndpoint, str]:
        """Create a webhook that works as long as its owner is active."""
        owner = fields.pop("owner")
        return actions.create_endpoint(
            owner_id=owner.pk, expires_at=fields.pop("expires_at"), fields=fields, actor=actor
        )

    @object_tool(
        label="Edit",
        permission=_MANAGE,
        question="The service sends queued events to the new URL.",
        form=WebhookChangeForm,
        initial=_shown,
    )
    def edit(self, obj: WebhookEndpoint, actor: Actor, **fields: Any) -> str:
        endpoints = WebhookEndpoint.objects.all()
        actions.change_endpoint(
            endpoints=endpoints, endpoint_id=obj.pk, changes=fields, actor=actor
        )
        return f"The webhook {fields.get('name', obj.name)} was changed."

    @object_tool(
        label="Send a test",
        permission="webhooks.change_webhookendpoint",
        question="The service sends a message of the type webhook.test to the receiver.",
        shown=lambda endpoint: endpoint.is_enabled,
    )
    def send_test(self, obj: WebhookEndpoint, actor: Actor) -> str:
        actions.send_test(endpoint=obj, actor=actor)
        return "The test message is queued. Its result appears among the deliveries."

    @object_tool(
        label="Rotate the secret",
        permission=_MANAGE,
        question="The service shows the new secret once. For a day, it signs messages with both "
        "the new and the old secret.",
        destructive=True,
        # Another rotation, such as by a double click, would end the use of the old secret.
        displayed=lambda endpoint: endpoint.retired_secret_until,
        change="The secret was rotated",
    )
    def rotate_secret(self, obj: Any, actor: Actor, *, check: Any) -> str:
        endpoints = WebhookEndpoint.objects.all()
        obj.new_secret = actions.rotate_secret(
            endpoints=endpoints, endpoint_id=obj.pk, actor=actor, check=check
        )
        return f"The webhook {obj.name} has a new secret."

    @object_tool(
        label="Disable",
        permission="webhooks.change_webhookendpoint",
        question="The service stops deliveries and cancels pending messages. It never delivers "
        "events that occur while the webhook is disabled. Only an operator can enable the webhook "
        "again.",
        offered=lambda endpoint: not endpoint.is_blocked,
        destructive=True,
    )
    def disable(self, obj: WebhookEndpoint, actor: Actor) -> str:
        actions.disable_endpoint(endpoint_id=obj.pk, reason=BY_OPERATOR, actor=actor)
        return f"The webhook {obj.name} is disabled."

    @object_tool(
        label="Enable",
        permission="webhooks.change_webhookendpoint",
        question="The webhook receives new events again. You can redeliver cancelled messages.",
        offered=_is_disabled,
        displayed=lambda endpoint: endpoint.disabled_at,
        change="The webhook was disabled again",
    )
    def enable(self, obj: WebhookEndpoint, actor: Actor, *, check: Any) -> str:
        actions.enable_endpoint(endpoint_id=obj.pk, actor=actor, check=check)
        return f"The webhook {obj.name} is enabled."
