"""The admin of changes: a filterable timeline of all states and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html

from infra_service.change_history.models import Change, Kind
from infra_service.change_history.signs import WORDS, mark, shown
from infra_service.lib.admin import ReadOnlyAdmin
from infra_service.lib.admin.choice_filter import ChoiceFilter
from infra_service.lib.admin.input_filters import IdFilter, InputFilter
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.templatetags.words import breakable
from infra_service.lib.api.identifiers import parse_uuid
from states.admin.resources import StateFilter, TypeFilter
from states.models import Environment

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class KindFilter(ChoiceFilter):
    """A filter by kind: resources or workloads."""

    title = parameter_name = column = "kind"
    offered = ((Kind.RESOURCE, "Resources"), (Kind.WORKLOAD, "Workloads"))


class ActionFilter(ChoiceFilter):
    """A filter by the action."""

    title = parameter_name = column = "action"
    offered = tuple(WORDS.items())


class EnvironmentFilter(InputFilter):
    """A filter by the slug or the id of an environment."""

    title = parameter_name = "environment"

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        del request
        environment_id = parse_uuid(text)
        if environment_id is None:
            slugs = Environment.objects.filter(slug=text)
            environment_id = slugs.values_list("pk", flat=True).first()
        if environment_id is None:
            return queryset.none()
        return queryset.filter(environment_id=environment_id)


class WorkloadFilter(IdFilter):
    """A filter by the id of a workload, to which the page of the workload links."""

    title = "workload id"
    parameter_name = "workload"
    column = "workload_id"


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    """The list of changes, newest first."""

    when_empty = "manage.py index_states --watch stores the changes of pushed states."
    list_display = ("occurred", "shown_action", "shown_address", "place", "created_by")
    orders: ClassVar[Any] = {"occurred": ("id",)}
    opening_order = "-occurred"
    list_filter = (
        KindFilter,
        ActionFilter,
        EnvironmentFilter,
        TypeFilter,
        StateFilter,
        WorkloadFilter,
    )
    search_fields = ("address",)
    search_help_text = "Part of the address, or of the former address of a moved resource."
    fields = (
        "occurred", "shown_action", "shown_address", "previous_address", "place",
        "version_number", "type", "provider", "shown_attributes", "shown_before", "shown_after",
        "problem", "created_by", "token_id", "id",
    )  # fmt: skip
    occurred = moment_of("occurred_at", "occurred")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Change]:
        """Return all changes. Separate queries load the names of a page's states and clusters."""
        around = ("state__component", "state__environment", "cluster")
        return super().get_queryset(request).prefetch_related(*around)

    def found(self, queryset: QuerySet[Change], term: str) -> QuerySet[Change]:
        """Find changes by a part of the address, or of the former address of a moved resource."""
        return queryset.filter(Q(address__icontains=term) | Q(previous_address__icontains=term))

    @admin.display(description="action")
    def shown_action(self, change: Change) -> str:
        return mark(change.action)

    @admin.display(description="address")
    def shown_address(self, change: Change) -> str:
        return breakable(change.address)

    @admin.display(description="changed attributes")
    def shown_attributes(self, change: Change) -> str:
        return ", ".join(change.attributes)

    @admin.display(description="before")
    def shown_before(self, change: Change) -> str:
        return shown(change, change.before)

    @admin.display(description="after")
    def shown_after(self, change: Change) -> str:
        return shown(change, change.after)

    @admin.display(description="state or cluster")
    def place(self, change: Change) -> str:
        """Return the state or the workload's cluster, with a link."""
        if change.kind == Kind.WORKLOAD:
            model, key = "workloads_workload", change.workload_id
            name = change.cluster and change.cluster.name
        else:
            model, key, name = "states_state", change.state_id, change.state
        if name is None:
            return str(self.get_empty_value_display())
        return format_html(
            '<a href="{}">{}</a>', reverse(f"admin:{model}_change", args=[key]), name
        )
