"""Serializer of changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from infra_service.change_history.models import ACTIONS
from infra_service.lib.api.fields import described
from states.api.serializers import SLUG


@described("A change of a resource between a version and the one before, without any value.")
class ChangeSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(read_only=True, help_text="Newer versions have greater ids.")
    occurred_at = serializers.DateTimeField(
        read_only=True, help_text="The time at which the version was stored."
    )
    action = serializers.ChoiceField(
        choices=ACTIONS, read_only=True, help_text="The kind of the change."
    )
    address = serializers.CharField(
        read_only=True, help_text="The address in Terraform; empty for UNKNOWN."
    )
    previous_address = serializers.CharField(
        read_only=True, help_text="The former address of a moved resource, otherwise empty."
    )
    type = serializers.CharField(
        read_only=True, help_text="The resource type, such as `aws_s3_bucket`."
    )
    provider = serializers.CharField(
        read_only=True,
        help_text="The provider's address, such as `registry.terraform.io/hashicorp/aws`.",
    )
    attributes = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="The names of the changed attributes, at most 100, in alphabetical order. Empty "
        "for added and removed resources, and if only Terraform's own data changed.",
    )
    problem = serializers.CharField(
        read_only=True, help_text="The reason of UNKNOWN, otherwise empty."
    )
    state_id = serializers.UUIDField(read_only=True, help_text="The changed state.")
    version_number = serializers.IntegerField(
        read_only=True, help_text="The version that contains the change."
    )
    component_id = serializers.UUIDField(read_only=True, help_text="The state's component.")
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    environment_id = serializers.UUIDField(read_only=True, help_text="The state's environment.")
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
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
