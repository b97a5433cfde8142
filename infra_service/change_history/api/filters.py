from django_filters import CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import EnumFilter, IntegerFilter
from infra_service.change_history.models import ACTIONS, KINDS, Change
from states.api.filters import OfStateFilters


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
    workload_id = UUIDFilter()

    class Meta:
        model = Change
        fields = ()
