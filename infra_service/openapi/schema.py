"""Build an operation of the OpenAPI document from a view's declarations.

The view determines scopes, token kinds, errors, path parameters, and which request fields are
known. The texts are in ``infra_service.lib.api.openapi_words``.
"""

from __future__ import annotations

import inspect
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_examples_list
from rest_framework import serializers

from infra_service.lib.api import idempotency, orders
from infra_service.lib.api.fields import KnownListField, PresentSerializer, TextField
from infra_service.lib.api.idempotency import is_idempotent
from infra_service.lib.api.openapi_words import DeclaredErrors, in_words
from infra_service.openapi.answers import Answers
from infra_service.openapi.components import lift
from infra_service.openapi.error_docs import errors_of
from infra_service.openapi.wrappers import describe_wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS: Final = {
    "apiKey": "an API key",
    "accessToken": "an access token",
    "accessTokenAsPassword": "an access token as the password of HTTP Basic",
}
_PART: Final = re.compile(r"^/(?:api/)?(?:v1/)?([a-z-]+)")
# Paths that belong to no resource.
_SERVICE: Final = {"healthz", "readyz", "schema", "docs", "whoami"}
# Generated clients have a module per tag. `state` and `states` would be easy to confuse.
_TAGS: Final = {
    "state": "state-backend",
    "oauth": "access-tokens",
    **dict.fromkeys(
        ("resource-index", "providers", "resource-types", "terraform-versions", "engines"),
        "resources",
    ),
}


_IDEMPOTENCY_KEY: Final = {
    "name": idempotency.HEADER,
    "in": "header",
    "required": False,
    "description": "A new UUID for each request. If a client repeats the request with the same "
    "path and body within 24 hours, the service returns the first response and changes nothing. "
    "The service stores a response with a secret for only ten minutes.",
    "schema": {"type": "string", "pattern": idempotency.PATTERN},
}


def _most(field: serializers.ListField) -> int | None:
    most: int | None = getattr(field, "most", field.max_length)
    return most


class ApiSchema(AutoSchema):  # type: ignore[misc,unused-ignore]
    """The OpenAPI description of an operation."""

    # Any, because drf-spectacular's type lacks the attributes of this project's views.
    view: Any

    def get_operation(self, *args: Any) -> dict[str, Any] | None:
        """Return the operation, with its access rules and all responses."""
        operation: dict[str, Any] | None = super().get_operation(*args)
        if operation is None:
            return None
        if security := operation.get("security"):
            access = self._access(security)
            operation["description"] = f"{operation['description']}\n\n{access}"
        more = (idempotency.REPLAYED,) if is_idempotent(self.view) else ()
        if more:
            operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
        declared: Any = self.get_response_serializers()
        refused = declared.values() if isinstance(declared, dict) else ()
        answers = Answers(self.registry, is_public=self.is_public)
        done = {code: of for code, of in operation["responses"].items() if code.startswith("2")}
        for code, answer in done.items():
            answers.add_headers(answer, int(code), *more)
            answer["description"] = answer["description"] or HTTPStatus(int(code)).phrase
        errors = errors_of(self.view, operation, is_raw=self.takes_raw_body)
        given = [r for r in refused if isinstance(r, DeclaredErrors)]
        operation["responses"] = done | answers.error_answers(errors, given)
        lifted: dict[str, Any] = lift(operation, self.registry)
        return lifted

    def get_description(self) -> str:  # type: ignore[override, unused-ignore]
        """Return the docstring of the method. Class docstrings address developers, not users."""
        name = getattr(self.view, "action", self.method.lower())
        return inspect.getdoc(getattr(self.view, name, None)) or ""

    def get_summary(self) -> str:
        """Return the operation's id in words."""
        words = str(self.get_operation_id()).replace("_", " ")
        return (words[0].upper() + words[1:]).replace(" api ", " API ")

    def get_tags(self) -> list[str]:
        """Return the tag: the first path segment that names a resource."""
        match = _PART.match(self.path)
        part = match[1] if match else ""
        return ["service" if part in _SERVICE else _TAGS.get(part, part)]

    @property
    def is_public(self) -> bool:
        """Return whether the view accepts requests without a token."""
        return getattr(self.view, "public", False)

    @property
    def takes_raw_body(self) -> bool:
        """Return whether the view reads the body itself and declares its schema by media type."""
        return isinstance(self.get_request_serializer(), dict)

    def get_request_serializer(self) -> Any:
        """Return the serializer of the request, or None for methods without a body."""
        has_body = self.method in ("POST", "PUT", "PATCH")
        return super().get_request_serializer() if has_body else None

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return the authentication alternatives, or an empty list for public views."""
        return [] if self.is_public else super().get_auth()

    def _access(self, security: Sequence[dict[str, list[str]]]) -> str:
        scopes = " and ".join(f"`{scope}`" for scope in next(iter(security[0].values())))
        kinds = " or ".join(_KINDS[name] for requirement in security for name in requirement)
        noun = "scopes" if " and " in scopes else "scope"
        needed = f"the {noun} {scopes}" if scopes else "no scope"
        if getattr(self.view, "minted_only", False) and len(security) > 1:
            kinds += " that was minted from an API key"
        return f"Requires {needed}, and accepts {kinds}."

    def _resolve_path_parameters(self, variables: list[str]) -> list[dict[str, Any]]:
        """Return the path parameters. ``id`` has the schema of the serializer's field."""
        parameters: list[dict[str, Any]] = super()._resolve_path_parameters(variables)  # type: ignore[no-untyped-call]
        for parameter in parameters:
            if parameter["name"] == "id":
                field = self._get_serializer().fields["id"]  # type: ignore[no-untyped-call]
                schema = self._map_serializer_field(field, "response")
                self._insert_field_validators(field, schema)  # type: ignore[no-untyped-call]
                schema.pop("readOnly")
                resource = in_words(self.view.resource)
                parameter.update(schema=schema, description=f"The id of the {resource}.")
        return parameters

    def _get_paginator(self) -> Any:
        paginator = super()._get_paginator()  # type: ignore[no-untyped-call]
        if paginator is not None:
            paginator.view = self.view
        return paginator

    def _get_pagination_parameters(self) -> list[dict[str, Any]]:
        """Return the pagination parameters, even if the page is not a list of rows."""
        declared: Any = self.get_response_serializers()
        page = declared.get(200) if isinstance(declared, dict) else None
        if isinstance(page, dict) and "next_page_token" in page["properties"]:
            paged: list[dict[str, Any]]
            paged = self._get_paginator().get_schema_operation_parameters(self.view)
            return paged
        paged = super()._get_pagination_parameters()  # type: ignore[no-untyped-call]
        if not paged or not self._get_paginator().takes_order:
            return paged
        return [orders.described(self.view), *paged]

    def _get_serializer_name(self, *args: Any, **kwargs: Any) -> str:
        """Return the name of a component.

        The names of PATCH requests start with Update or contain Changes.
        """
        name: str = super()._get_serializer_name(*args, **kwargs)
        part = name.removeprefix("Patched")
        if part == name or part.startswith("Update"):
            return part
        return f"{part.removesuffix('Request')}ChangesRequest"

    def get_paginated_name(self, serializer_name: str) -> str:
        """Return the name of a page's component."""
        return f"{serializer_name}Page"

    def _map_serializer_field(
        self,
        field: Any,
        direction: str,
        bypass_extensions: bool = False,  # noqa: FBT001, FBT002 - drf-spectacular's signature
    ) -> Any:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        schema = lift(schema, self.registry)
        if direction != "request":
            return schema
        if isinstance(field, TextField) and not field.allow_blank:
            schema["pattern"] = field.pattern
        if isinstance(field, serializers.ListField):
            bounds = {"minItems": 0 if field.allow_empty else 1, "maxItems": _most(field)}
            schema |= {name: bound for name, bound in bounds.items() if bound}
        return schema

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        """Forbid unknown request fields, and require all response fields, which may be null."""
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if text := getattr(serializer, "described", ""):
            schema = {"type": schema["type"], "description": text, **schema}
        if hasattr(serializer, "wraps"):
            describe_wrapper(schema, serializer, direction)
        if direction == "request":
            schema["additionalProperties"] = False
        else:
            schema["required"] = [
                name
                for name, field in serializer.fields.items()
                if not isinstance(field, PresentSerializer | KnownListField)
            ]
        return schema

    def _get_examples(
        self,
        _serializer: Any,
        direction: str,
        _media_type: str,
        status_code: str | None = None,
        extras: Any = None,
    ) -> dict[str, Any]:
        """Return examples unchanged, because an example of a list shows the whole response."""
        if status_code is not None and not status_code.startswith("2"):
            return {}
        other = "response_only" if direction == "request" else "request_only"
        examples = [*self.get_examples(), *(extras or [])]
        shown: dict[str, Any] = build_examples_list(
            [e for e in examples if not getattr(e, other) and not e.parameter_only]
        )
        return shown

    def _get_request_body(self, direction: str = "request") -> Any:
        """Return the request body, including the body that a DELETE declares."""
        if not self.takes_raw_body:
            return super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        method, self.method = self.method, "POST"
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        self.method = method
        return body if method == "DELETE" else {**body, "required": True}

    def _get_response_for_code(self, serializer: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(serializer, DeclaredErrors):
            return {}  # described by get_operation
        return super()._get_response_for_code(serializer, *args, **kwargs)  # type: ignore[no-untyped-call]
