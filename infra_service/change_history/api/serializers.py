"""Serializer of changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from infra_service.change_history.models import ACTIONS, KINDS
from infra_service.lib.api.fields import described
from states.api.serializers import SLUG


@described(
    "A change of a resource between a version and the one before, without any value; or of a "
    "workload in a report of its cluster. The fields of the other kind are null or empty."
)
class ChangeSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(read_only=True, help_text="Newer changes have greater ids.")
    occurred_at = serializers.DateTimeField(
        read_only=True,
        help_text="The time at which the version was stored, or the workload observed.",
    )
    kind = serializers.ChoiceField(
        choices=KINDS, read_only=True, help_text="Whether a resource or a workload changed."
    )
    action = serializers.ChoiceField(
        choices=ACTIONS, read_only=True, help_text="The kind of the change."
    )
    address = serializers.CharField(
        read_only=True,
        help_text="The address in Terraform, empty for UNKNOWN; or the workload's namespace and "
        "name, such as `shop/checkout`.",
    )
    previous_address = serializers.CharField(
        read_only=True, help_text="The former address of a moved resource, otherwise empty."
    )
    type = serializers.CharField(
        read_only=True,
        help_text="The resource type, such as `aws_s3_bucket`; or the kind of the workload, "
        "such as `Deployment`.",
    )
    provider = serializers.CharField(
        read_only=True,
        help_text="The provider's address, such as `registry.terraform.io/hashicorp/aws`.",
    )
    attributes = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="The names of the changed attributes, at most 100, in alphabetical order. Empty "
        "for added and removed resources, and if only Terraform's own data changed. Of "
        "IMAGE_CHANGED the names of the containers.",
    )
    before = serializers.CharField(
        read_only=True,
        help_text="Of a workload the former images, number of replicas or health, else empty.",
    )
    after = serializers.CharField(
        read_only=True,
        help_text="Of a workload the new images, number of replicas or health, else empty.",
    )
    problem = serializers.CharField(
        read_only=True, help_text="The reason of UNKNOWN or of the new health, otherwise empty."
    )
    state_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The changed state."
    )
    version_number = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="The version that contains the change."
    )
    component_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The state's component."
    )
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    environment_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The state's environment."
    )
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    cluster_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The workload's cluster."
    )
    cluster_name = serializers.CharField(
        read_only=True, allow_null=True, help_text="Its current name; null if it was deleted."
    )
    workload_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The changed workload."
    )
    created_by = serializers.CharField(
        read_only=True, help_text="The user or pipeline that stored the version."
    )
    token_id = serializers.CharField(
        read_only=True, help_text="The token of that request; empty for commands and operators."
    )
    commit = serializers.CharField(
        read_only=True, allow_null=True, help_text="The commit, if a pipeline recorded it."
    )
    run_url = serializers.CharField(
        read_only=True, allow_null=True, help_text="The pipeline's run, if it was recorded."
    )


@described("The number of changes with the same day, kind, environment and action.")
class ChangeGroupSerializer(serializers.Serializer[Any]):
    day = serializers.DateField(read_only=True, help_text="The day, in UTC.")
    kind = serializers.ChoiceField(
        choices=KINDS, read_only=True, help_text="Whether resources or workloads changed."
    )
    environment_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The environment; null for workloads."
    )
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    action = serializers.ChoiceField(
        choices=ACTIONS, read_only=True, help_text="The action of the changes."
    )
    changes = serializers.IntegerField(
        read_only=True, min_value=1, help_text="The number of changes."
    )


@described("The number of changes in a period.")
class ChangeSummarySerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField(read_only=True, help_text="Start of the period.")
    until = serializers.DateTimeField(read_only=True, help_text="End of the period (exclusive).")
    total = serializers.IntegerField(
        read_only=True, min_value=0, help_text="Number of changes that match the filter."
    )
    groups = ChangeGroupSerializer(
        many=True,
        read_only=True,
        help_text="The groups, ordered by day, kind, environment and action. Groups without "
        "changes are absent.",
    )
