"""What lists may be filtered by; the list of workloads is always of one cluster."""

from django_filters import CharFilter, FilterSet

from filterlang.filters import EnumFilter, IntegerFilter, LabelsFilter
from workloads.models import HEALTH_STATUSES, KINDS


class WorkloadFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of workloads."""

    namespace = CharFilter()
    kind = EnumFilter(choices=KINDS)
    name = CharFilter()
    health_status = EnumFilter(choices=HEALTH_STATUSES, prefix="WORKLOAD_HEALTH_STATUS_")
    labels = LabelsFilter()
    status_reason = CharFilter()
    replicas_desired = IntegerFilter()
    replicas_ready = IntegerFilter()
    replicas_available = IntegerFilter()
    cpu_requests_millicores = IntegerFilter()
    cpu_limits_millicores = IntegerFilter()
    cpu_used_millicores = IntegerFilter()
    memory_requests_bytes = IntegerFilter()
    memory_limits_bytes = IntegerFilter()
    memory_used_bytes = IntegerFilter()


class ClusterFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of clusters."""

    name = CharFilter()
