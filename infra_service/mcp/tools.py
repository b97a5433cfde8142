"""The tools: their arguments, and the API requests that answer their calls.

The argument types validate calls, and their JSON schemas describe the arguments to clients.
"""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict
from django.urls import resolve
from msgspec import Meta

from apikeys.permissions import HasScope
from filterlang.nodes import Or
from filterlang.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request

    from apikeys.scopes import Scope


class WorkloadRef(msgspec.Struct, forbid_unknown_fields=True):
    cluster_id: uuid.UUID
    workload_id: uuid.UUID


def _text(description: str, **limits: Any) -> tuple[Any, str]:
    return Annotated[str, Meta(description=description, **limits)], ""


#: Arguments that are compared with the filter's field of the same name, or of ``_FIELDS``.
_COMPARED: Final = {
    "type": "Resource type, such as aws_s3_bucket.",
    "provider": "Complete source address, as in list_providers.",
    "environment": "Slug of the environment.",
    "component": "Slug of the component.",
    "cluster": "Name or id of the cluster.",
    "namespace": "Namespace in the cluster.",
    "repository": "Image repository without a tag, such as ghcr.io/acme/shop.",
    "digest": "Image digest, such as sha256:9c1e…",
    "action": "Action of the event, such as state.push or state.force_unlock.",
    "actor_name": "Name of the user.",
    "resource_id": "Id of the resource, such as a state.",
}
_FIELDS: Final = {"repository": "image.repository", "digest": "image.digest"}
_FILTER: Final = (
    "Terms such as field['name'] = 'value', with =, !=, ~= (contains, ignoring case), STARTS_WITH, "
    "IN ('a', 'b'), <, >=, joined by AND, OR and NOT. Times are RFC 3339."
)
#: The type of each argument, and the default of an optional argument.
_ARGUMENTS: Final[dict[str, tuple[Any, ...]]] = {
    "identifier": (Annotated[str, Meta(min_length=1, max_length=2048)],),
    "state_id": (uuid.UUID,),
    "workloads": (Annotated[list[WorkloadRef], Meta(min_length=1, max_length=10)],),
    # A quote or a backslash would end the value in the filter.
    **{n: _text(text, max_length=300, pattern=r"^[^'\\]*$") for n, text in _COMPARED.items()},
    "filter": _text(_FILTER, max_length=700),
    # A page token contains the position in the list, such as the address of a provider.
    "cursor": _text("next_cursor of the previous answer.", max_length=8192),
}


def _parse_filter(arguments: Any) -> None:
    """Reject an invalid filter, such as ``a) OR (b``, which would be valid inside parentheses."""
    parse(getattr(arguments, "filter", ""))


@dataclass(frozen=True)
class Tool:
    """A tool, and the API path that answers its calls.

    ``page_size`` is the number of items that usually fit into an answer. ``condition`` is a fixed
    part of the filter. ``shown`` lists the fields of an item in the answer, or is empty for all
    fields.
    """

    name: str
    path: str
    argument_names: str
    description: str
    page_size: int = 20
    condition: str = ""
    order_by: str = ""
    shown: tuple[str, ...] = ()

    @cached_property
    def argument_type(self) -> type[msgspec.Struct]:
        fields = [(name, *_ARGUMENTS[name]) for name in self.argument_names.split()]
        methods = {"__post_init__": _parse_filter}
        return msgspec.defstruct(self.name, fields, namespace=methods, forbid_unknown_fields=True)

    @cached_property
    def view(self) -> Any:
        return resolve(self.path.replace("{", "").replace("}", "")).func

    @cached_property
    def action(self) -> str:
        """The name of the view's method, which determines the required scope."""
        actions = getattr(self.view, "actions", {"get": "GET"})
        return str(actions.get("get") or actions["post"])

    @property
    def scope(self) -> Scope:
        return self.view.cls.required_scopes[self.action]  # type: ignore[no-any-return]

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The description for clients, with the JSON schema of the arguments."""
        _, parts = msgspec.json.schema_components(
            [self.argument_type], ref_template="#/$defs/{name}"
        )
        fields = ""
        if "filter" in self.argument_type.__struct_fields__:
            names = self.view.cls.filterset_class.base_filters
            fields = f" Fields of the filter: {', '.join(names)}."
        return {
            "name": self.name,
            "description": self.description + fields,
            "inputSchema": {**parts.pop(self.name), "$defs": parts},
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }

    def responses(self, given: dict[str, Any], size: int, outer: Request) -> Iterator[Any]:
        """Yield the API's responses that answer a call, with at most ``size`` items."""
        compared = {_FIELDS.get(name, name): given.get(name) for name in _COMPARED}
        terms = [f"field['{name}'] = '{value}'" for name, value in compared.items() if value]
        own = given.get("filter", "").strip()
        # Only where necessary, because parentheses count towards the maximum depth.
        own = f"({own})" if (terms or self.condition) and isinstance(parse(own), Or) else own
        joined = " AND ".join(filter(None, (*terms, self.condition, own)))
        query = {"filter": joined, "order_by": self.order_by}
        query |= {"page_size": str(size), "page_token": given.get("cursor", "")}
        text = urlencode({name: value for name, value in query.items() if value})
        for each in given.get("workloads", [given])[:size]:
            yield self._send(outer, self.path.format_map(each), text, given)

    def _send(self, outer: Request, path: str, query: str, given: Any) -> Any:
        """Return the response of the view's method to the caller of the outer request.

        The method runs unchanged: scope, binding, filters and pages are the same as over HTTP. The
        outer request is already authenticated, counted for the rate limits and parsed.
        """
        http: Any = copy.copy(outer._request)
        http.method, http.path, http.path_info, http.GET = "GET", path, path, QueryDict(query)
        request: Any = copy.copy(outer)
        request._request, request._full_data = http, {"value": given.get("identifier")}
        view = self.view.cls(**self.view.initkwargs, permission_classes=[HasScope])
        view.request, view.kwargs = request, resolve(path).kwargs
        view.action, view.format_kwarg = self.action, None
        view.check_permissions(request)
        return getattr(view, self.action.lower())(request, **view.kwargs)


_OF_WORKLOADS: Final = (
    "id", "cluster_id", "cluster_name", "namespace", "name", "kind", "health_status",
    "status_reason", "replicas_desired", "replicas_ready",
)  # fmt: skip
TOOLS: Final = {tool.name: tool for tool in (
    Tool("find_resource", "/api/v1/resources:find", "identifier cursor",
         "Find the resources with an exact id, ARN, self link or Kubernetes UID."),
    Tool("list_resources", "/api/v1/resources",
         "type provider environment component filter cursor",
         "List the resources of all states: address, type, provider and state, without "
         "attributes."),
    Tool("list_states", "/api/v1/states", "environment component filter cursor",
         "List states with their versions, times and locks.", 8),
    Tool("get_state", "/api/v1/states/{state_id}", "state_id", "Show a state."),
    Tool("list_outputs", "/api/v1/states/{state_id}/outputs", "state_id cursor",
         "List the outputs of a state. Sensitive values are usually hidden."),
    Tool("list_changes", "/api/v1/changes", "environment component type filter cursor",
         "List changes to resources, newest first, with author, time, commit, run and attribute "
         "names. To list changes since a time: field['occurred_at'] >= "
         "'2026-11-20T00:00:00Z'.", 12),
    Tool("list_locks", "/api/v1/states", "environment cursor",
         "List locked states and the holders of their locks, oldest lock first.", 8,
         condition="field['locked'] = 'true'", order_by="lock.acquired_at"),
    Tool("list_dependencies", "/api/v1/states/{state_id}/dependencies", "state_id cursor",
         "List the states that a state reads through terraform_remote_state, and the states that "
         "read it.", 10),
    Tool("list_providers", "/api/v1/providers", "cursor",
         "Count the states and resources of each provider. list_resources lists the "
         "resources.", 40),
    Tool("list_unwell_workloads", "/api/v1/workloads", "cluster namespace filter cursor",
         "List workloads that are degraded or in error, with reasons, worst first.", 14,
         condition="field['health_status'] IN ('DEGRADED', 'ERROR')", shown=_OF_WORKLOADS),
    Tool("find_image", "/api/v1/workloads", "repository digest cluster cursor",
         "List the workloads that run an image.", 8, shown=(*_OF_WORKLOADS, "containers")),
    Tool("find_managing_states", "/api/v1/clusters/{cluster_id}/workloads/{workload_id}",
         "workloads",
         "Show the states that manage workloads: managed_by contains state_id and address.", 10,
         shown=(*_OF_WORKLOADS, "managed", "managed_by")),
    Tool("search_audit_log", "/api/v1/audit-events",
         "action actor_name resource_id filter cursor",
         "Search the audit log, newest first: actor, action, time and token.", 12),
)}  # fmt: skip
