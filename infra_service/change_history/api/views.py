"""Views of the changes of all states and clusters, and of a single state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from filterlang.backend import PARAMETER
from infra_service.change_history.api.filters import (
    ChangeFilters,
    ChangeOfStateFilters,
    with_ids_of_times,
)
from infra_service.change_history.api.openapi import (
    changes_schema,
    of_state_schema,
    summary_schema,
)
from infra_service.change_history.api.serializers import ChangeSerializer, ChangeSummarySerializer
from infra_service.change_history.models import Change
from infra_service.change_history.summaries import LONGEST, summarize
from infra_service.lib.api.parameters import refuse_unknown
from infra_service.lib.api.periods import PERIOD_PARAMETERS, read_period
from infra_service.lib.api.viewsets import ResourceViewSet
from states.api.filters import with_ids
from states.api.states import visible_state
from states.errors import StateNotFound
from workloads.api.filters import with_cluster_ids
from workloads.models import Cluster

if TYPE_CHECKING:
    from django.db.models import Q
    from rest_framework.request import Request

    from infra_service.change_history.models import ChangeQuerySet


class _ListViewSet(ResourceViewSet[Change]):
    queryset = Change.objects.with_names()
    serializer_class = ChangeSerializer
    resource, resource_plural = "change", "changes"
    page_key = ("-id",)
    searched_fields = ("action", "created_by", "version_number")
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.STATE_READ}

    def get_queryset(self) -> ChangeQuerySet:
        changes: Any = super().get_queryset()
        caller = caller_of(self.request)
        inside: ChangeQuerySet = changes.inside(caller.binding)
        return inside if Scope.CLUSTER_READ in caller.scopes else inside.of_resources()

    def prepared(self, condition: Q) -> Q:
        return with_ids(with_ids_of_times(condition))


@changes_schema
class ChangeViewSet(_ListViewSet):
    """The changes of all states, and with `cluster:read` of all clusters, within the binding."""

    filterset_class = ChangeFilters
    required_scopes = {"list": Scope.STATE_READ, "summary": Scope.STATE_READ}

    def prepared(self, condition: Q) -> Q:
        visible = Cluster.objects.inside(caller_of(self.request).binding)
        return super().prepared(with_cluster_ids(condition, visible))

    @summary_schema
    def summary(self, request: Request) -> Response:
        """Count the filtered changes of a period by day, kind, environment and action."""
        refuse_unknown(request.query_params, {PARAMETER, *PERIOD_PARAMETERS})
        since, until = read_period(request, now=timezone.now(), longest=LONGEST)
        changes: Any = self.filter_queryset(self.get_queryset())
        summary = summarize(changes, since, until)
        return Response({"summary": ChangeSummarySerializer(summary).data})


@of_state_schema
class ChangeOfStateViewSet(_ListViewSet):
    """The changes of the state in the path."""

    filterset_class = ChangeOfStateFilters
    scoped_by = ("state_id",)
    not_found = StateNotFound

    def get_queryset(self) -> ChangeQuerySet:
        """Return the changes of the state.

        Raises:
            StateNotFound: the state is outside the caller's binding.
        """
        state = visible_state(self.request, self.kwargs["state_id"])
        return super().get_queryset().filter(state_id=state.pk)
