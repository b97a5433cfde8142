"""Helpers for apps to describe their endpoints in OpenAPI.

The OpenAPI document derives scopes, token types, serializers and ``not_found`` from views. These
helpers add the errors of a method, examples of requests and responses, and named JSON schemas.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import serializers

from infra_service.lib.api.periods import DEFAULT_PERIOD

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping

    from rest_framework.exceptions import APIException

    Errors = Iterable[type[APIException]]


class Named(dict[str, Any]):
    """A JSON schema that becomes a component with this name."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        super().__init__(schema)
        self.name = name


@dataclass(frozen=True, slots=True)
class DeclaredErrors:
    """The errors with the same status, and the schema of the fields next to ``error``.

    ``instead`` is an alternative format of some responses with this status.
    """

    errors: tuple[type[APIException], ...]
    beside: Named | None = None
    instead: Named | None = None


def error_docs(
    *errors: type[APIException], beside: Named | None = None, instead: Named | None = None
) -> dict[int, DeclaredErrors]:
    """Return these errors by status, for the argument ``responses``."""
    by_status: dict[int, list[type[APIException]]] = {}
    for error in errors:
        by_status.setdefault(int(error.status_code), []).append(error)
    return {status: DeclaredErrors(tuple(of), beside, instead) for status, of in by_status.items()}


def request_example(value: Any) -> OpenApiExample:
    """Return the example of a request's body."""
    return OpenApiExample("Request", value, request_only=True)


def answer_example(value: Any) -> OpenApiExample:
    """Return the example of a complete response."""
    return OpenApiExample("Answer", value, response_only=True)


def needs(*scopes: str, of: str) -> Any:
    """Return the security of a method that requires other scopes than its view declares."""
    return [{of: list(scopes)}]


#: The header of responses that caches must not store.
NO_STORE: Final = OpenApiParameter(
    "Cache-Control",
    {"type": "string", "const": "no-store"},
    OpenApiParameter.HEADER,
    required=True,
    response=[200, 201],
    description="The response may contain secrets and must not be cached.",
)
#: A response without a body.
EMPTY: Final = OpenApiResponse(None, "Success. The body is empty.")


def period_parameters(longest: dt.timedelta) -> list[OpenApiParameter]:
    """Return the parameters of ``periods.read_period``."""
    usual = DEFAULT_PERIOD.days
    descriptions = {
        "since": f"Start of the period, at most {longest.days} days before `until`. The default is "
        f"{usual} days before `until`.",
        "until": "End of the period. The default is now.",
    }
    return [
        OpenApiParameter(name, OpenApiTypes.DATETIME, description=description)
        for name, description in descriptions.items()
    ]


def object_of(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties, which are all required."""
    return {"type": "object", "required": list(properties), "properties": properties}


def described_object(name: str, description: str, /, **properties: Any) -> Named:
    """Return a named schema of an object with these properties, which are all required."""
    return Named(name, {"description": description, **object_of(**properties)})


def as_component(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field as a component, so that the field can have a description.

    Client generators would invent names for unnamed schemas.
    """
    return {"allOf": [Named(name, schema)]}


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def wrapped(
    name: str,
    field: str,
    serializer: type[serializers.Serializer[Any]],
    *,
    partial: bool = False,
    required: bool = True,
    **beside: Any,
) -> Any:
    """Return the schema of a wrapped resource and of the fields next to the resource."""
    resource = serializer(partial=partial, required=required)
    # Copies of the fields follow the resource, because fields keep the order of their creation.
    wrapper: Any = inline_serializer(name, {field: resource, **copy.deepcopy(beside)})
    wrapper.wraps = field  # for infra_service.openapi.wrappers, which describes both
    return wrapper


def _name_of(serializer: type[serializers.Serializer[Any]]) -> str:
    return serializer.__name__.removesuffix("Serializer")


@functools.cache
def answer_of(resource: str, serializer: type[serializers.Serializer[Any]]) -> Any:
    """Return the schema of a response with the resource, the same for all operations."""
    return wrapped(f"{_name_of(serializer)}Answer", resource, serializer)


def in_words(name: str) -> str:
    """Return the name of a resource as words, such as ``API key``."""
    return name.replace("_", " ").replace("api", "API")


def update_mask(serializer: type[serializers.Serializer[Any]]) -> tuple[Any, OpenApiParameter]:
    """Return the update mask as a field of the body and as a query parameter.

    Clients send either the field or the parameter. The paths are the writable fields. ``*`` selects
    all fields.
    """
    paths = [name for name, field in serializer().fields.items() if not field.read_only]
    path = f"({'|'.join(paths)})"
    text = {"type": "string", "pattern": rf"^(\*|{path}(,{path})*)?$"}
    name = _name_of(serializer)
    known = {"type": "string", "enum": paths, "description": "A field that clients can change."}
    mask = {
        "anyOf": [text, list_of(Named(f"{name}Field", known))],
        "description": "Field names, as a comma-separated string or as a list.",
    }
    field = type("MaskField", (serializers.JSONField,), {})
    extend_schema_field(as_component(f"{name}Mask", mask))(field)
    described = (
        "The fields to change; `*` means all. Fields in the mask that are absent from the body are "
        "reset to their defaults, or rejected if they have none. Without a mask, the fields in the "
        "body are changed."
    )
    parameter = OpenApiParameter(
        "update_mask",
        text,
        OpenApiParameter.QUERY,
        description=f"The same as `update_mask` in the body. {described}",
    )
    return field(required=False, help_text=described), parameter


def resource_schema(
    resource: str,
    description: str,
    serializer: type[serializers.Serializer[Any]],
    sample: Mapping[str, Any],
    *,
    plural: str = "",
    new: Mapping[str, Any] | None = None,
    create_errors: Errors = (),
    change_errors: Errors = (),
    delete_errors: Errors | None = None,
    change_docs: Mapping[int, DeclaredErrors] = MappingProxyType({}),
    **operations: Any,
) -> Callable[[type], type]:
    """Return the decorator of a viewset that lists, creates, retrieves and changes a resource.

    ``delete_errors`` is None if the viewset cannot delete. ``change_docs`` contains errors of a
    change in another format. ``description`` describes the list. ``sample`` is a resource in a
    response. ``new`` is the example of a request; the default is the writable fields of the sample.
    ``operations`` are further operations, and replacements, by the names of their methods.
    """
    name, answer = _name_of(serializer), answer_of(resource, serializer)
    mask, mask_parameter = update_mask(serializer)
    fields = serializer().fields
    # Swagger UI can send the example, which must not change the name of a real resource.
    harmless = {**sample, **dict.fromkeys(("name", "slug") & sample.keys(), "example")}
    writable = {n: v for n, v in harmless.items() if not fields[n].read_only}
    shown = answer_example({resource: sample})
    described = {
        "list": list_schema(resource, description, sample, plural=plural),
        "retrieve": extend_schema(
            operation_id=f"get_{resource}", responses=answer, examples=[shown]
        ),
        "create": extend_schema(
            operation_id=f"create_{resource}",
            request=wrapped(f"Create{name}", resource, serializer),
            responses={201: answer, **error_docs(*create_errors)},
            examples=[request_example({resource: new or writable}), shown],
        ),
        "partial_update": extend_schema(
            operation_id=f"update_{resource}",
            parameters=[mask_parameter],
            request=wrapped(f"Update{name}", resource, serializer, partial=True, update_mask=mask),
            responses={200: answer, **error_docs(*change_errors), **change_docs},
            examples=[
                request_example({resource: {"name": harmless["name"]}, "update_mask": "name"}),
                shown,
            ],
        ),
    }
    if delete_errors is not None:
        described["destroy"] = extend_schema(
            operation_id=f"delete_{resource}", responses={204: None, **error_docs(*delete_errors)}
        )
    return extend_schema_view(**described | operations)


def list_schema(
    resource: str, description: str, sample: Any, *, plural: str = "", **options: Any
) -> Callable[[Any], Any]:
    """Return the decorator of a list. ``sample`` is an item of the list."""
    plural = plural or f"{resource}s"
    page = {plural: [sample], "next_page_token": ""}
    return extend_schema(
        **{
            "operation_id": f"list_{plural}",
            "description": description,
            "examples": [answer_example(page)],
            **options,
        }
    )
