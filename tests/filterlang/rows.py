"""A list to filter: a column of each type, nullable where possible, with a field set."""

from django.db import models
from django_filters import BooleanFilter, CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import (
    EnumFilter,
    IdentifierFilter,
    IntegerFilter,
    LabelsFilter,
    VersionsFilter,
)

KINDS = ("Deployment", "StatefulSet", "DaemonSet")
HEALTHS = ("WORKLOAD_HEALTH_STATUS_UNSPECIFIED", "HEALTHY", "DEGRADED", "ERROR")
HEALTH_PREFIX = "WORKLOAD_HEALTH_STATUS_"


class Row(models.Model):
    uid = models.UUIDField(null=True)
    name = models.CharField(max_length=50)
    note = models.TextField(null=True)  # noqa: DJ001  # NULL is what the tests are about
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in KINDS])
    health = models.CharField(max_length=50, null=True)  # noqa: DJ001  # the same
    size = models.BigIntegerField(null=True)
    replicas = models.IntegerField(null=True)
    created_at = models.DateTimeField(null=True)
    lock_id = models.UUIDField(null=True)
    paused = models.BooleanField(null=True)
    labels = models.JSONField(default=dict)

    class Meta:
        # No installed app: the fixture `rows_table` makes the table.
        app_label = "filterlang_rows"


class RowFilters(FilterSet):
    id = UUIDFilter(field_name="uid")
    name = CharFilter()
    note = CharFilter()
    kind = EnumFilter(choices=Row._meta.get_field("kind").choices)
    health_status = EnumFilter(
        field_name="health", choices=[(h, h) for h in HEALTHS], prefix=HEALTH_PREFIX
    )
    size_bytes = IntegerFilter(field_name="size")
    replicas = IntegerFilter()
    created_at = IsoDateTimeFilter()
    locked = BooleanFilter(field_name="lock_id", lookup_expr="isnull", exclude=True)
    paused = BooleanFilter()
    serial_number = IdentifierFilter(field_name="name")
    labels = LabelsFilter()

    class Meta:
        model = Row
        fields = ()


class VersionedFilters(RowFilters):
    # No column has it.
    uses = VersionsFilter()
