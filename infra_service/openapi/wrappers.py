"""Descriptions of wrappers: request and response bodies that contain a resource under its name."""

from __future__ import annotations

from typing import Any

from infra_service.lib.api.openapi_words import in_words


def describe_wrapper(schema: dict[str, Any], wrapper: Any, direction: str) -> None:
    """Describe the schema of a wrapper and its resource."""
    name = wrapper.wraps
    resource = in_words(name)
    if direction == "response":
        described = f"A response with the {resource}."
        of_resource = f"The {resource} at the time of the response."
    elif wrapper.fields[name].partial:
        described = f"A request to change the {resource}."
        of_resource = (
            "The new values. Absent fields keep their values, unless `update_mask` contains them."
        )
    else:
        described = f"A request with the new {resource}."
        of_resource = f"The new {resource}. Absent optional fields have their default values."
    schema["description"] = described
    reference = schema["properties"][name]
    schema["properties"][name] = {"allOf": [reference], "description": of_resource}
