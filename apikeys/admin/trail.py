"""The audit trail, read only, newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.db import connection
from django.utils.html import format_html

from apikeys.models import AuditEvent
from infra_service.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

# The actions that have occurred: one step in the index for each, where DISTINCT reads every row.
_ACTIONS: Final = """
WITH RECURSIVE seen (action) AS (
    SELECT min(action) FROM apikeys_auditevent
    UNION ALL
    SELECT (SELECT min(action) FROM apikeys_auditevent WHERE action > seen.action)
    FROM seen WHERE seen.action IS NOT NULL
) SELECT action FROM seen WHERE action IS NOT NULL
"""


class ActionFilter(admin.SimpleListFilter):
    """By what was done."""

    title = "action"
    parameter_name = "action"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        with connection.cursor() as cursor:
            cursor.execute(_ACTIONS)
            return [(action, action) for (action,) in cursor.fetchall()]

    def has_output(self) -> bool:
        """Show it also beside one action."""
        return bool(self.lookup_choices)

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        action = self.value()
        if action is None:
            return queryset
        # PostgreSQL takes no NUL, and no action has one.
        return queryset.none() if "\0" in action else queryset.filter(action=action)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Who did what; the database refuses to change it."""

    page_key = ("-occurred_at", "-id")
    list_display = ("occurred_at", "action", "actor_name", "shown_resource", "address")
    list_filter = (ActionFilter,)
    search_fields = ("resource_id",)
    search_help_text = "The whole id of what was changed."
    fields = (
        "occurred_at", "action", "actor_name", "actor_id", "token_id", "resource_id",
        "address", "request_id", "client_request_id", "shown_details",
    )  # fmt: skip

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by the resource's id, exactly."""
        term = search_term.strip()
        return (queryset.filter(resource_id=term) if term else queryset), False

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Go to all that was done to the same resource."""
        event = self.get_object(request, unquote(object_id))
        resource_id = quote("" if event is None else event.resource_id)
        return super().history_view(request, resource_id, extra_context)

    @admin.display(description="resource")
    def shown_resource(self, event: AuditEvent) -> str:
        """Return the id of what was changed."""
        return format_html('<span class="identifier">{}</span>', event.resource_id)

    @admin.display(description="details")
    def shown_details(self, event: AuditEvent) -> str:
        """Return the details as they are kept."""
        return format_html("<pre>{}</pre>", json.dumps(event.details, indent=2, sort_keys=True))
