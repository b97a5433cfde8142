"""The audit log in the admin, read only, newest first."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.db import connection
from django.db.models import Q
from django.utils.html import format_html

from apikeys.credential_names import credential_link, credential_names, user_link
from apikeys.models import AuditEvent, User
from infra_service.lib.admin import ReadOnlyAdmin
from infra_service.lib.admin.input_filters import DateFilter, InputFilter
from infra_service.lib.admin.templatetags.charts import identifier
from infra_service.lib.admin.templatetags.moments import relative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

# One index lookup for each recorded action. SELECT DISTINCT would read every row.
_ACTIONS: Final = """
WITH RECURSIVE seen (action) AS (
    SELECT min(action) FROM apikeys_auditevent
    UNION ALL
    SELECT (SELECT min(action) FROM apikeys_auditevent WHERE action > seen.action)
    FROM seen WHERE seen.action IS NOT NULL
) SELECT action FROM seen WHERE action IS NOT NULL
"""


class ActionFilter(InputFilter):
    """A filter by action, shown as a menu because there are many actions."""

    title = "action"
    parameter_name = "action"

    def suggested(self, request: HttpRequest) -> Sequence[str]:
        del request
        with connection.cursor() as cursor:
            cursor.execute(_ACTIONS)
            return [action for (action,) in cursor.fetchall()]

    def typed(self, queryset: QuerySet[Any], text: str, request: HttpRequest) -> QuerySet[Any]:
        del request
        return queryset.filter(action=text)


class ActorFilter(InputFilter):
    """A filter by actor: the exact name of a user, or a part of any actor name."""

    title = "actor"
    parameter_name = "actor"

    def typed(self, queryset: QuerySet[Any], text: str, request: HttpRequest) -> QuerySet[Any]:
        del request
        user = User.objects.filter(username=text).first()
        if user is not None:
            return queryset.filter(actor_id=user.pk)
        return queryset.filter(actor_name__icontains=text)


class TokenFilter(InputFilter):
    title = "key or token"
    parameter_name = "token"

    def typed(self, queryset: QuerySet[Any], text: str, request: HttpRequest) -> QuerySet[Any]:
        del request
        return queryset.filter(token_id=text)


class AddressFilter(InputFilter):
    title = "address"
    parameter_name = "address"

    def typed(self, queryset: QuerySet[Any], text: str, request: HttpRequest) -> QuerySet[Any]:
        del request
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return queryset.none()
        return queryset.filter(address=str(address))


class SinceFilter(DateFilter):
    title = "from"
    parameter_name = "since"

    def of_day(self, queryset: QuerySet[Any], day: dt.datetime) -> QuerySet[Any]:
        return queryset.filter(occurred_at__gte=day)


class UntilFilter(DateFilter):
    """A filter for events up to the end of the given day."""

    title = "to"
    parameter_name = "until"

    def of_day(self, queryset: QuerySet[Any], day: dt.datetime) -> QuerySet[Any]:
        return queryset.filter(occurred_at__lt=day + dt.timedelta(days=1))


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The read-only admin of audit events, which the database protects against changes."""

    page_key = ("-occurred_at", "-id")
    list_display = ("moment", "action", "actor", "shown_resource", "token", "address")
    list_display_links = ("moment",)
    list_filter = (
        ActionFilter, ActorFilter, TokenFilter, AddressFilter, SinceFilter, UntilFilter,
    )  # fmt: skip
    orders: ClassVar[Any] = {"moment": ("occurred_at", "id")}
    opening_order = "-moment"
    search_fields = ("resource_id",)
    search_help_text = "The name or the id of an object, or the name of a user."
    fields = (
        "moment", "action", "shown_resource", "actor", "shown_token", "address", "shown_details",
        "resource_id", "actor_id", "request_id", "client_request_id",
    )  # fmt: skip

    def heading(self, obj: Any) -> str:
        """Return the action and its resource."""
        return f"{obj.action} of {obj.resource_name}" if obj.resource_name else obj.action

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the events of resources with this id or name, and of the user with this name."""
        term = search_term.strip()
        of_id = queryset.filter(resource_id=term)
        if not term or of_id.exists():
            return (of_id if term else queryset), False
        of_names = Q(resource_id__in=self.admin_site.ids_named(term, request.user))
        user = User.objects.filter(username=term).first()
        return queryset.filter(of_names | Q(actor_id=user.pk) if user else of_names), False

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Redirect to all events of the same resource."""
        event = self.get_object(request, unquote(object_id))
        resource_id = quote("" if event is None else event.resource_id)
        return super().history_view(request, resource_id, extra_context)

    def prepare_object(self, request: HttpRequest, obj: AuditEvent) -> None:
        """Look up the names of the resource, the key and the token."""
        self.prepare_page(request, [obj])

    def prepare_page(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Look up the names of the resources, keys and tokens that the person can view."""
        named = self.admin_site.resources_of(rows, request.user)
        names = credential_names(request.user, (event.token_id for event in rows))
        for event in rows:
            event.token_names = names
            key = (event.action.partition(".")[0], event.resource_id)
            event.resource_name, event.resource_url = named.get(key, ("", ""))

    @admin.display(description="time")
    def moment(self, event: AuditEvent) -> str:
        return relative(event.occurred_at)

    @admin.display(description="actor")
    def actor(self, event: AuditEvent) -> str:
        """Return the actor, with a link to the user."""
        if event.actor_id is None:
            return event.actor_name or "not logged in"
        return user_link(event.actor_id, event.actor_name)

    @admin.display(description="key or token")
    def token(self, event: Any) -> str | None:
        """Return the key or token that was used, with a link."""
        if not event.token_id:
            return None
        return credential_link(event.token_id, event.token_names)

    @admin.display(description="key or token")
    def shown_token(self, event: Any) -> str:
        """Return the key or token, or the admin's placeholder for empty values."""
        return self.token(event) or str(self.get_empty_value_display())

    @admin.display(description="object")
    def shown_resource(self, event: Any) -> str:
        """Return the name of the resource with a link, or the id if the resource has no page."""
        if event.resource_url:
            return format_html('<a href="{}">{}</a>', event.resource_url, event.resource_name)
        return identifier(event.resource_id)

    @admin.display(description="details")
    def shown_details(self, event: AuditEvent) -> str:
        return format_html("<pre>{}</pre>", json.dumps(event.details, indent=2, sort_keys=True))
