"""Filters of changes.

The index of each filtered column ends with the column that orders the pages.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django_filters import CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import EnumFilter, IdentifierFilter, IntegerFilter
from filterlang.rewriting import rewritten
from infra_service.change_history.models import ACTIONS, KINDS, Change
from infra_service.lib.database.months import first_id
from states.api.filters import OfStateFilters
from workloads.api.filters import CLUSTER

if TYPE_CHECKING:
    from django.db.models import Q

#: Comparisons of a time in whole milliseconds, and the equivalent comparisons of an id.
_OF_IDS: Final = {"occurred_at__gte": "id__gte", "occurred_at__lt": "id__lt"}


class ChangeOfStateFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of the changes of a state."""

    occurred_at = IsoDateTimeFilter()
    action = EnumFilter(choices=[(action, action) for action in ACTIONS])
    address = CharFilter()
    type = CharFilter()
    provider = CharFilter()
    created_by = CharFilter()
    version_number = IntegerFilter()

    class Meta:
        model = Change
        fields = ()


class ChangeFilters(ChangeOfStateFilters, OfStateFilters):
    """The filterable fields of the changes of all states and clusters."""

    kind = EnumFilter(choices=[(kind, kind) for kind in KINDS])
    cluster_id = UUIDFilter()
    # ``with_cluster_ids`` resolves names and ids before the query.
    cluster = IdentifierFilter(field_name="cluster__id", help_text=CLUSTER)
    cluster_name = CharFilter(field_name="cluster__name")
    workload_id = UUIDFilter()

    class Meta:
        model = Change
        fields = ()


def with_ids_of_times(condition: Q) -> Q:
    """Return the condition with comparisons of ids in place of equivalent comparisons of times.

    Each index ends with the id, which begins with the milliseconds of the time. The database would
    test a comparison of the time itself row by row.
    """
    return rewritten(condition, _with_id_of_time)


def _with_id_of_time(path: str, value: Any) -> tuple[str, Any]:
    if path in _OF_IDS and isinstance(value, dt.datetime) and value.microsecond % 1000 == 0:
        return _OF_IDS[path], first_id(value)
    return path, value
