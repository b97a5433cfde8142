"""What lists may be filtered by; the list of workloads is always of one cluster."""

from django_filters import CharFilter, FilterSet

from filterlang.filters import EnumFilter, IntegerFilter, LabelsFilter
from workloads.kubernetes.figures import FIGURES
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
    vars().update({figure.name: IntegerFilter() for figure in FIGURES})


class ClusterFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of clusters."""

    name = CharFilter()
