"""Serializers of a workload's history."""

from __future__ import annotations

import datetime as dt
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from infra_service.lib.api.fields import TimestampField, described
from workloads.models import HEALTH_STATUSES
from workloads.models.history import TransitionType

TRANSITION_TYPES = [(kind.value, kind.value) for kind in TransitionType]


@extend_schema_field({"$ref": "#/components/schemas/WorkloadHealthStatus"})
class HealthOrNullField(serializers.ChoiceField):
    """A field for a health, or null while the workload does not exist."""


@described("A change in a workload's health or its reason.")
class TransitionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(
        read_only=True,
        help_text="Number of the change, counted from 1 for each workload. The count restarts "
        "after all changes of the workload have been deleted.",
    )
    type = serializers.ChoiceField(
        TRANSITION_TYPES,
        read_only=True,
        help_text="APPEARED if the workload is new, DISAPPEARED if it no longer exists, otherwise "
        "CHANGED.",
    )
    at = TimestampField(read_only=True, help_text="Time when the reporter observed the change.")
    from_health_status = HealthOrNullField(
        HEALTH_STATUSES,
        read_only=True,
        allow_null=True,
        help_text="Health before the change; null for APPEARED.",
    )
    to_health_status = HealthOrNullField(
        HEALTH_STATUSES,
        read_only=True,
        allow_null=True,
        help_text="Health after the change; null for DISAPPEARED.",
    )
    status_reason = serializers.CharField(
        read_only=True, help_text="The reason for the health after the change."
    )


@extend_schema_field({"type": "number", "format": "double", "minimum": 0})
class ElapsedField(serializers.Field[dt.timedelta, Any, float, Any]):
    """A duration in seconds."""

    def to_representation(self, value: dt.timedelta) -> float:
        return value.total_seconds()


@described("The share of a period in which a workload was healthy.")
class AvailabilitySerializer(serializers.Serializer[Any]):
    since = TimestampField(read_only=True, help_text="Start of the period.")
    until = TimestampField(read_only=True, help_text="End of the period.")
    healthy_ratio = serializers.FloatField(
        read_only=True,
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text="healthy_seconds divided by the sum of healthy_seconds, degraded_seconds and "
        "error_seconds; null if the sum is 0.",
    )
    healthy_seconds = ElapsedField(source="healthy", read_only=True, help_text="Time in HEALTHY.")
    degraded_seconds = ElapsedField(
        source="degraded", read_only=True, help_text="Time in DEGRADED."
    )
    error_seconds = ElapsedField(source="error", read_only=True, help_text="Time in ERROR.")
    unspecified_seconds = ElapsedField(
        source="unspecified",
        read_only=True,
        help_text="Time with reports but with an unspecified health.",
    )
    unobserved_seconds = ElapsedField(
        source="unobserved",
        read_only=True,
        help_text="Time before the first report, in gaps between reports, after the last report, "
        "and while the workload did not exist.",
    )
