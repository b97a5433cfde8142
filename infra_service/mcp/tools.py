"""The tools: the arguments of each, and the requests to the API that answer it.

Argument types validate the arguments, and their JSON schemas describe them.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from infra_service.mcp.requests import send, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request


class WorkloadRef(msgspec.Struct, forbid_unknown_fields=True):
    cluster_id: uuid.UUID
    workload_id: uuid.UUID


def _value(text: str) -> Any:
    """Return the type of a value in a filter term; a quote or a backslash would end the value."""
    return Annotated[str, Meta(max_length=300, pattern=r"^[^'\\]*$", description=text)]


_CURSOR: Final = Meta(max_length=1000, description="next_cursor of the previous answer.")
_FILTER: Final = Meta(
    max_length=1024,
    description="Terms such as field['name'] = 'value', with =, !=, ~= (contains), STARTS_WITH, "
    "IN ('a', 'b'), <, >=, joined by AND, OR and NOT. Times are RFC 3339.",
)
_REQUIRED: Final[dict[str, Any]] = {
    "identifier": Annotated[str, Meta(min_length=1, max_length=2048)],
    "state_id": uuid.UUID,
    "workloads": Annotated[list[WorkloadRef], Meta(min_length=1, max_length=10)],
}
_OPTIONAL: Final[dict[str, Any]] = {
    "type": _value("Such as aws_s3_bucket."),
    "provider": _value("Complete, as in list_providers."),
    "environment": _value("Slug of the environment."),
    "component": _value("Slug of the component."),
    "cluster": _value("Name or id of the cluster."),
    "namespace": _value("Namespace in the cluster."),
    "repository": _value("Such as ghcr.io/acme/shop, without a tag."),
    "digest": _value("Such as sha256:9c1e…"),
    "action": _value("Such as state.push or state.force_unlock."),
    "actor_name": _value("Name of the user."),
    "resource_id": _value("Such as the id of a state."),
    "filter": Annotated[str, _FILTER],
    "cursor": Annotated[str, _CURSOR],
}
#: The fields of the filter that have other names than their arguments.
_FIELDS: Final = {"repository": "image.repository", "digest": "image.digest"}
_OF_WORKLOADS: Final = (
    "id", "cluster_id", "cluster_name", "namespace", "name", "kind", "health_status",
    "status_reason", "replicas_desired", "replicas_ready",
)  # fmt: skip


class Tool(NamedTuple):
    """A tool. An argument without another meaning is a term of the filter.

    ``path`` is the name of ``state_id`` in the path, ``condition`` a fixed part of the filter, and
    ``shown`` the fields of an item in the answer, or empty for all fields. ``page_size`` is the
    number of items that usually fit into an answer.
    """

    name: str
    route: str
    argument_names: str
    description: str
    page_size: int = 20
    path: str = ""
    condition: str = ""
    order_by: str = ""
    shown: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        return self.argument_names.split()

    def responses(self, given: Any, size: int, request: Request) -> Iterator[Any]:
        """Yield the API's responses that answer a call, with at most ``size`` items."""
        values = msgspec.structs.asdict(given)
        for each in values.pop("workloads", ()):
            path = {"cluster_id": str(each.cluster_id), "id": str(each.workload_id)}
            yield send(request, self.route, path, {})
        if "workloads" in self.arguments:
            return
        body = {"value": values.pop("identifier")} if "identifier" in values else None
        path = {self.path: str(values.pop("state_id"))} if self.path else {}
        query = {"page_size": str(size), "page_token": values.pop("cursor", "")}
        parts = [self.condition, values.pop("filter", "")]
        terms = [f"field['{_FIELDS.get(n, n)}'] = '{text}'" for n, text in values.items() if text]
        query["filter"] = " AND ".join([*terms, *(f"({part})" for part in parts if part)])
        query["order_by"] = self.order_by
        yield send(request, self.route, path, {n: text for n, text in query.items() if text}, body)


_UNWELL: Final = "field['health_status'] IN ('DEGRADED', 'ERROR')"
TOOLS: Final = {tool.name: tool for tool in (
    Tool("find_resource", "resource-find", "identifier cursor",
         "Find the resources with an exact id, ARN, self link or Kubernetes UID."),
    Tool("list_resources", "resource-list", "type provider environment component filter cursor",
         "List the resources of all states: address, type, provider and state, no attributes."),
    Tool("list_states", "state-list", "environment component filter cursor",
         "List states with their versions, times and locks.", 8),
    Tool("get_state", "state-detail", "state_id", "Show a state.", path="id"),
    Tool("list_outputs", "state-outputs", "state_id cursor",
         "List the outputs of a state. Sensitive values are usually hidden.", path="state_id"),
    Tool("list_changes", "change-list", "environment component type filter cursor",
         "List changes of resources, newest first: who, when, commit, run, names of attributes. "
         "Since a time: field['occurred_at'] >= '2026-11-20T00:00:00Z'.", 12),
    Tool("list_locks", "state-list", "environment cursor",
         "List locked states and the holders of their locks, the oldest lock first.", 8,
         condition="field['locked'] = 'true'", order_by="lock.acquired_at"),
    Tool("list_dependencies", "state-dependencies", "state_id cursor",
         "List the states that a state reads by terraform_remote_state, and its readers.", 10,
         path="state_id"),
    Tool("list_providers", "provider-counts", "cursor",
         "Count the states and resources of each provider; list_resources lists its users.", 40),
    Tool("list_unwell_workloads", "fleet-list", "cluster namespace filter cursor",
         "List workloads that are degraded or in error, with reasons, the worst first.", 14,
         condition=_UNWELL, shown=_OF_WORKLOADS),
    Tool("find_image", "fleet-list", "repository digest cluster cursor",
         "List the workloads that run an image.", 8, shown=(*_OF_WORKLOADS, "containers")),
    Tool("find_managing_states", "workload", "workloads",
         "Show the states that manage workloads: managed_by has state_id and address.",
         shown=(*_OF_WORKLOADS, "managed", "managed_by")),
    Tool("search_audit_log", "audit-events", "action actor_name resource_id filter cursor",
         "Search the audit log, newest first: actor, action, time and token.", 12),
)}  # fmt: skip


@functools.cache
def arguments_of(tool: Tool) -> type[msgspec.Struct]:
    """Return the type of a tool's arguments."""
    required = [(name, _REQUIRED[name]) for name in tool.arguments if name in _REQUIRED]
    optional = [(name, _OPTIONAL[name], "") for name in tool.arguments if name in _OPTIONAL]
    return msgspec.defstruct(tool.name, [*required, *optional], forbid_unknown_fields=True)


@functools.cache
def described(tool: Tool) -> dict[str, Any]:
    """Return the description of a tool for clients, with the JSON schema of its arguments."""
    _, parts = msgspec.json.schema_components([arguments_of(tool)], ref_template="#/$defs/{name}")
    schema = {**parts.pop(tool.name), **({"$defs": parts} if parts else {})}
    fields = ""
    if "filter" in tool.arguments:
        names = view_of(tool.route).cls.filterset_class.base_filters
        fields = f" Fields of the filter: {', '.join(names)}."
    return {
        "name": tool.name,
        "description": tool.description + fields,
        "inputSchema": {name: part for name, part in schema.items() if name != "title"},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
