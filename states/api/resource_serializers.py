"""Serializers of the resource index."""

from __future__ import annotations

import json
from typing import Any, Final

from rest_framework import serializers

from infra_service.lib.api.fields import StrictSerializer, described
from states.api.serializers import SLUG

#: Maximum characters of a search value.
MOST_OF_VALUE: Final = 10_000


@described("A resource instance in the current version of a state, without any of its values.")
class ResourceEntrySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(
        read_only=True, help_text="The id of the index entry; a changed instance gets a new id."
    )
    state_id = serializers.UUIDField(
        read_only=True, help_text="The state that contains the instance."
    )
    component_id = serializers.UUIDField(read_only=True, help_text="The state's component.")
    component_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    environment_id = serializers.UUIDField(read_only=True, help_text="The state's environment.")
    environment_slug = serializers.CharField(read_only=True, allow_null=True, help_text=SLUG)
    version_number = serializers.IntegerField(
        read_only=True, help_text="The version of the state that was indexed."
    )
    address = serializers.CharField(
        read_only=True,
        help_text='The address in Terraform, such as `module.app.aws_s3_bucket.logs["eu"]`.',
    )
    deposed = serializers.CharField(
        read_only=True, help_text="The key of a deposed object; empty for the current object."
    )
    module = serializers.CharField(
        read_only=True,
        help_text="The module's address, such as `module.network`; empty in the root module.",
    )
    mode = serializers.CharField(
        read_only=True, help_text="`managed`, or `data` for a data source."
    )
    type = serializers.CharField(
        read_only=True, help_text="The resource type, such as `aws_s3_bucket`."
    )
    name = serializers.CharField(read_only=True, help_text="The name in the configuration.")
    index_key = serializers.JSONField(
        read_only=True, help_text="A number for `count`, a string for `for_each`; otherwise null."
    )
    provider = serializers.CharField(
        read_only=True,
        help_text="The provider's address, such as `registry.terraform.io/hashicorp/aws`.",
    )


class IdentifyingField(serializers.JSONField):
    """A string, or an identity: an object of strings, numbers, booleans and lists of these."""

    default_error_messages = {
        "form": "Must be a string, or an object of strings, numbers, booleans and lists of these.",
        "length": f"Must have at most {MOST_OF_VALUE} characters.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not data or not (isinstance(data, str) or _is_identity(data)):
            self.fail("form")
        if len(json.dumps(data)) > MOST_OF_VALUE:
            self.fail("length")
        return data


def _is_identity(data: Any) -> bool:
    return isinstance(data, dict) and all(
        item is None or isinstance(item, str | int | float)
        for member in data.values()
        for item in (member if isinstance(member, list) else [member])
    )


@described("A search for the resource of a cloud or Kubernetes object.")
class FindSerializer(StrictSerializer):
    value = IdentifyingField(
        help_text="An id, ARN, self link or name; `namespace/name` or the uid of a Kubernetes "
        "object; or a resource identity of Terraform, as an object."
    )
