"""Serializers of the facts of a version."""

from __future__ import annotations

import re
from typing import Any, Final

from rest_framework import serializers

from infra_service.lib.api.fields import StrictSerializer, TextField, TimestampField, described
from states.pipeline import lock_file, module_manifest

_OF_PLATFORM: Final = "Taken from the token of a keyless pipeline run; otherwise empty."


class FileField(TextField):
    """The unchanged text of a file."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False, write_only=True, allow_blank=True, trim_whitespace=False, **kwargs
        )


class JsonFileField(serializers.JSONField):
    """The text of a JSON file, or the object that it contains."""

    default_error_messages = {"form": "Must be a string or an object."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | dict):
            self.fail("form")
        return data


class AddressField(TextField):
    """A link for browsers, which must not run a script. The service itself never requests it."""

    pattern = r"^https?://[!-~]+$"
    default_error_messages = {"form": "Must be a URL that begins with https:// or http://."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if re.fullmatch(self.pattern, text) is None:
            self.fail("form")
        return text


@described("A provider in a dependency lock file.")
class ProviderSerializer(serializers.Serializer[Any]):
    source = serializers.CharField(  # type: ignore[assignment]  # a field also has a source
        read_only=True,
        help_text="The source address, such as `registry.terraform.io/hashicorp/aws`.",
    )
    version = serializers.CharField(
        read_only=True, help_text="The selected version, such as `5.31.0`."
    )
    constraints = serializers.CharField(
        read_only=True, help_text="The constraints, such as `~> 5.0`; empty if unconstrained."
    )


@described("A module call.")
class ModuleSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(
        read_only=True, help_text="The path of the call, such as `network.vpc`."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # a field also has a source
        read_only=True, help_text="The source, without credentials."
    )
    version = serializers.CharField(
        read_only=True,
        help_text="The version, such as `5.1.0`; empty for local modules and modules from Git.",
    )


@described("Facts that a pipeline reports about a version: commit, run, modules and providers.")
class FactsSerializer(StrictSerializer):
    version_number = serializers.IntegerField(
        read_only=True, help_text="The version that the facts describe."
    )
    commit = TextField(
        required=False,
        max_length=200,
        help_text="The commit of the configuration. The default comes from the keyless token.",
    )
    repository = serializers.CharField(read_only=True, help_text=_OF_PLATFORM)
    run = serializers.CharField(read_only=True, help_text=_OF_PLATFORM)
    run_url = AddressField(
        required=False,
        max_length=2000,
        help_text="The URL of the run's page. The default comes from the keyless token of GitHub "
        "or GitLab.",
    )
    lock_file = FileField(help_text=f"The text of `{lock_file.NAME}`.")
    modules_file = JsonFileField(
        required=False,
        write_only=True,
        help_text=f"`.terraform/modules/{module_manifest.NAME}`, as a string, or as the JSON "
        "object that it contains.",
    )
    providers = ProviderSerializer(
        many=True,
        read_only=True,
        help_text="The providers in `lock_file`; empty if the pipeline did not send this file.",
    )
    modules = ModuleSerializer(
        many=True, read_only=True, help_text="The module calls in `modules_file`."
    )
    recorded_at = TimestampField(read_only=True, help_text="Time of the last report.")
    recorded_by = serializers.CharField(
        read_only=True, help_text="The user or service that reported the facts."
    )
    token_id = serializers.CharField(
        read_only=True, help_text="The id of the token that reported the facts."
    )
