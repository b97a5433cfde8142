"""The tools: the arguments of each, and the request to the API that answers it.

The schema of the arguments is generated from their struct. A tool needs the scope of its view.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta, Struct

from infra_service.mcp.requests import ApiRequest, filter_fields, scope_of

if TYPE_CHECKING:
    from apikeys.scopes import Scope

Cursor = Annotated[
    str,
    Meta(max_length=1000, description="`next_cursor` of the previous answer, for the next page."),
]
Filter = Annotated[
    str,
    Meta(
        max_length=1024,
        description="Terms such as field['name'] = 'value', with =, !=, ~= (contains), "
        "STARTS_WITH, IN ('a', 'b'), <, >=, joined by AND, OR and NOT. Times are RFC 3339.",
    ),
]
#: A value of a term. A quote or a backslash would need the filter language's escapes.
Value = Annotated[str, Meta(max_length=300, pattern=r"^[^'\\]*$")]
_OF_WORKLOADS: Final = (
    "id", "cluster_id", "cluster_name", "namespace", "name", "kind", "health_status",
    "status_reason", "replicas_desired", "replicas_ready",
)  # fmt: skip


class Tool(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A tool, whose fields are its arguments. The docstring of a subclass is its description."""

    name: ClassVar[str]
    route: ClassVar[str]
    #: The name in the path for each argument in the path.
    in_path: ClassVar[dict[str, str]] = {}
    #: The field of the filter for each other argument that is a value of a term.
    terms: ClassVar[dict[str, str]] = {}
    #: A fixed condition, and an order other than that of the list.
    condition: ClassVar[str] = ""
    order_by: ClassVar[str] = ""
    #: Items that usually fit into an answer, and their fields; empty for all.
    page_size: ClassVar[int] = 20
    shown: ClassVar[tuple[str, ...]] = ()

    def requests(self, size: int) -> list[ApiRequest]:
        """Return the requests that answer the call, with at most ``size`` items."""
        path = {name: getattr(self, argument) for argument, name in self.in_path.items()}
        return [ApiRequest(self.route, path, self._query(size))]

    def _query(self, size: int) -> dict[str, str]:
        given = {field: getattr(self, name) for name, field in self.terms.items()}
        conditions = [f"field['{field}'] = '{value}'" for field, value in given.items() if value]
        conditions += [
            f"({text})" for text in (self.condition, getattr(self, "filter", "")) if text
        ]
        return {
            "filter": " AND ".join(conditions),
            "order_by": self.order_by,
            "page_size": str(size),
            "page_token": getattr(self, "cursor", ""),
        }


class Paged(Tool, frozen=True, kw_only=True):
    cursor: Cursor = ""


class FindResource(Paged, frozen=True, kw_only=True):
    """Find the resources with an exact identifier: an id, ARN, self link or Kubernetes UID."""

    identifier: Annotated[str, Meta(min_length=1, max_length=2048)]
    name, route = "find_resource", "resource-find"

    def requests(self, size: int) -> list[ApiRequest]:
        query = {"page_size": str(size), "page_token": self.cursor}
        return [ApiRequest(self.route, {}, query, {"value": self.identifier})]


class ListResources(Paged, frozen=True, kw_only=True):
    """List the resources of all states: address, type, provider and state, without attributes."""

    type: Annotated[Value, Meta(description="Such as aws_s3_bucket.")] = ""
    provider: Annotated[Value, Meta(description="Complete, as list_providers shows it.")] = ""
    environment: Annotated[Value, Meta(description="Slug of the environment.")] = ""
    component: Annotated[Value, Meta(description="Slug of the component.")] = ""
    filter: Filter = ""
    name, route = "list_resources", "resource-list"
    terms = {name: name for name in ("type", "provider", "environment", "component")}


class ListStates(Paged, frozen=True, kw_only=True):
    """List states with their component, environment, serial, times and lock."""

    environment: Annotated[Value, Meta(description="Slug of the environment.")] = ""
    component: Annotated[Value, Meta(description="Slug of the component.")] = ""
    filter: Filter = ""
    name, route, page_size = "list_states", "state-list", 8
    terms = {name: name for name in ("environment", "component")}


class GetState(Tool, frozen=True, kw_only=True):
    """Show a state: component, environment, version, times, lock and freeze."""

    state_id: uuid.UUID
    name, route, in_path = "get_state", "state-detail", {"state_id": "id"}


class ListOutputs(Paged, frozen=True, kw_only=True):
    """List the outputs of a state. Sensitive values are hidden."""

    state_id: uuid.UUID
    name, route, in_path = "list_outputs", "state-outputs", {"state_id": "state_id"}


class ListLocks(Paged, frozen=True, kw_only=True):
    """List the locked states with the holders of their locks, the oldest lock first."""

    environment: Annotated[Value, Meta(description="Slug of the environment.")] = ""
    name, route, page_size = "list_locks", "state-list", 8
    terms = {"environment": "environment"}
    condition, order_by = "field['locked'] = 'true'", "lock.acquired_at"


class ListDependencies(Paged, frozen=True, kw_only=True):
    """List the states that a state reads by terraform_remote_state, and the states that read it."""

    state_id: uuid.UUID
    name, route, in_path = "list_dependencies", "state-dependencies", {"state_id": "state_id"}
    page_size = 10


class ListProviders(Paged, frozen=True, kw_only=True):
    """Count the states and resources of each provider. list_resources shows who uses one."""

    name, route, page_size = "list_providers", "provider-counts", 40


class ListUnwellWorkloads(Paged, frozen=True, kw_only=True):
    """List the workloads that are degraded or in error, with the reason, the worst first."""

    cluster: Annotated[Value, Meta(description="Name or id of the cluster.")] = ""
    namespace: Value = ""
    filter: Filter = ""
    name, route, page_size = "list_unwell_workloads", "fleet-list", 6
    terms = {name: name for name in ("cluster", "namespace")}
    shown = _OF_WORKLOADS
    condition = "field['health_status'] IN ('DEGRADED', 'ERROR')"


class FindImage(Paged, frozen=True, kw_only=True):
    """List the workloads whose containers run an image."""

    repository: Annotated[
        Value, Meta(description="Such as ghcr.io/acme/shop, without the tag.")
    ] = ""
    digest: Annotated[Value, Meta(description="Such as sha256:…")] = ""
    name, route, page_size = "find_image", "fleet-list", 6
    terms = {"repository": "image.repository", "digest": "image.digest"}
    shown = (*_OF_WORKLOADS, "containers")


class WorkloadRef(Struct, forbid_unknown_fields=True, frozen=True):
    cluster_id: uuid.UUID
    workload_id: uuid.UUID


class FindManagingStates(Tool, frozen=True, kw_only=True):
    """Show which states manage workloads: `managed_by` has the state and the resource's address."""

    workloads: Annotated[list[WorkloadRef], Meta(min_length=1, max_length=10)]
    name, route = "find_managing_states", "workload"
    shown = (*_OF_WORKLOADS, "managed", "managed_by")

    def requests(self, _size: int) -> list[ApiRequest]:
        return [
            ApiRequest(self.route, {"cluster_id": each.cluster_id, "id": each.workload_id})
            for each in self.workloads
        ]


class SearchAuditLog(Paged, frozen=True, kw_only=True):
    """Search the audit log, newest first: who did what, when, with which token."""

    action: Annotated[Value, Meta(description="Such as state.push or state.force_unlock.")] = ""
    actor_name: Value = ""
    resource_id: Annotated[Value, Meta(description="Such as the id of a state.")] = ""
    filter: Filter = ""
    name, route, page_size = "search_audit_log", "audit-events", 12
    terms = {name: name for name in ("action", "actor_name", "resource_id")}


TOOLS: Final[dict[str, type[Tool]]] = {
    tool.name: tool
    for tool in (
        FindResource, ListResources, ListStates, GetState, ListOutputs, ListLocks, ListDependencies,
        ListProviders, ListUnwellWorkloads, FindImage, FindManagingStates, SearchAuditLog,
    )
}  # fmt: skip


def scope_needed(tool: type[Tool]) -> Scope | None:
    """Return the scope that a tool needs, which is that of its view."""
    return scope_of(tool.route)


@functools.cache
def described(tool: type[Tool]) -> dict[str, Any]:
    """Return the description of a tool for clients, with the JSON schema of its arguments."""
    _, components = msgspec.json.schema_components([tool], ref_template="#/$defs/{name}")
    schema = components.pop(tool.__name__)
    text = schema.pop("description").replace("``", "`")
    del schema["title"]
    if "filter" in tool.__struct_fields__:
        text += f" Fields of `filter`: {', '.join(filter_fields(tool.route))}."
    return {
        "name": tool.name,
        "description": text,
        "inputSchema": {**schema, **({"$defs": components} if components else {})},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
