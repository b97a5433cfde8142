"""OpenAPI schema of the facts of versions."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema as operation
from drf_spectacular.utils import extend_schema_field, extend_schema_view

from infra_service.lib.api.openapi_words import (
    Named,
    answer_example,
    as_component,
    error_docs,
    request_example,
    wrapped,
)
from states.api.facts_serializers import FactsSerializer, JsonFileField
from states.api.states_openapi import A_STATE, A_VERSION
from states.errors import FactsNotFound, InvalidFile, StateNotFound, VersionNotFound
from states.pipeline import module_manifest

_PARSED: Final = Named(
    "ParsedManifest",
    {
        "type": "object",
        "description": f"The object in `{module_manifest.NAME}`: `Modules`, a list of `Key`, "
        "`Source` and `Version`.",
        "additionalProperties": True,
    },
)
_MANIFEST: Final = {
    "description": f"`{module_manifest.NAME}`, as text or as the parsed object.",
    "anyOf": [{"type": "string"}, _PARSED],
}
extend_schema_field(as_component("ModuleManifest", _MANIFEST))(JsonFileField)

_LOCK_FILE: Final = """\
provider "registry.terraform.io/hashicorp/aws" {
  version     = "5.31.0"
  constraints = "~> 5.0"
}
"""
_SOURCE: Final = "registry.terraform.io/terraform-aws-modules/vpc/aws"
_RUN: Final = {
    "commit": "8f2c1d7e5a6b4c3d2e1f0a9b8c7d6e5f4a3b2c1d",
    "run_url": "https://ci.example/runs/417",
}
_ASKED: Final = {
    **_RUN,
    "lock_file": _LOCK_FILE,
    "modules_file": {"Modules": [{"Key": "vpc", "Source": _SOURCE, "Version": "5.1.0"}]},
}
_ANSWERED: Final[dict[str, Any]] = {
    "version_number": 2,
    "commit": _RUN["commit"],
    "repository": "",
    "run": "",
    "run_url": _RUN["run_url"],
    "providers": [
        {
            "source": "registry.terraform.io/hashicorp/aws",
            "version": "5.31.0",
            "constraints": "~> 5.0",
        }
    ],
    "modules": [{"key": "vpc", "source": _SOURCE, "version": "5.1.0"}],
    "recorded_at": "2025-01-08T17:49:12.018400Z",
    "recorded_by": "ci",
    "token_id": "tok-03h9yiujf94l2b5uzm27j8ljz",
}
_FACTS: Final = wrapped("FactsAnswer", "facts", FactsSerializer)
_OF_VERSION: Final = [A_STATE, A_VERSION]

facts_schema = extend_schema_view(
    retrieve=operation(
        operation_id="get_state_version_facts",
        parameters=_OF_VERSION,
        responses={200: _FACTS, **error_docs(StateNotFound, VersionNotFound, FactsNotFound)},
        examples=[answer_example({"facts": _ANSWERED})],
    ),
    update=operation(
        operation_id="record_state_version_facts",
        parameters=_OF_VERSION,
        # An empty body is also valid: a pipeline's token then supplies the commit and the run.
        request=wrapped("RecordFacts", "facts", FactsSerializer, required=False),
        responses={
            200: _FACTS,
            **error_docs(InvalidFile, StateNotFound, VersionNotFound),
        },
        examples=[request_example({"facts": _ASKED}), answer_example({"facts": _ANSWERED})],
    ),
)
