"""Serializer of changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from infra_service.change_history.models import ACTIONS, KINDS
from infra_service.lib.api.fields import described
from states.api.serializers import SLUG


@described(
    "A change to a resource between two consecutive versions, or to a workload between two "
    "reports. Attribute values are not included. Fields that do not apply to the kind are null or "
    "empty."
)
class ChangeSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(read_only=True, help_text="Newer changes have greater ids.")
    occurred_at = serializers.DateTimeField(
        read_only=True,
        help_text="The time at which the version was stored, or at which the workload was "
        "observed.",
    )
    kind = serializers.ChoiceField(
        choices=KINDS, read_only=True, help_text="Whether a resource or a workload changed."
    )
    action = serializers.ChoiceField(
        choices=ACTIONS, read_only=True, help_text="The type of the change."
    )
    address = serializers.CharField(
        read_only=True,
        help_text="The address in Terraform, empty for UNKNOWN. For a workload, the namespace and "
        "name, such as `shop/checkout`.",
    )
    previous_address = serializers.CharField(
        read_only=True, help_text="The former address of a moved resource; otherwise empty."
    )
    type = serializers.CharField(
        read_only=True,
        help_text="The resource type, such as `aws_s3_bucket`, or the kind of the workload, "
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
        "for added and removed resources, and if only Terraform's own data changed. For "
        "IMAGE_CHANGED, the names of the containers.",
    )
    before = serializers.CharField(
        read_only=True,
        help_text="The former images, number of replicas or health of a workload; otherwise empty.",
    )
    after = serializers.CharField(
        read_only=True,
        help_text="The new images, number of replicas or health of a workload; otherwise empty.",
    )
    problem = serializers.CharField(
        read_only=True,
        help_text="The reason for UNKNOWN, or for the new health of a workload; otherwise empty.",
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
        read_only=True,
        allow_null=True,
        help_text="The current name of the cluster; null if the cluster was deleted.",
    )
    workload_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The changed workload."
    )
    created_by = serializers.CharField(
        read_only=True, help_text="The user or pipeline that stored the version."
    )
    token_id = serializers.CharField(
        read_only=True,
        help_text="The token that stored the version; empty for commands and operators.",
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
