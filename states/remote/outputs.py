"""Outputs of state versions, for the `cloud` block and the data source `tfe_outputs`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.scopes import Scope
from infra_service.lib.api.jsonapi import page_of, resource
from states.document import contents, sealing
from states.keeping import reading
from states.remote.errors import StateVersionNotFound
from states.remote.state_versions import OfVersionView, current_of
from states.remote.views import demand_any

if TYPE_CHECKING:
    from rest_framework.request import Request

    from infra_service.lib.database.compiled import Prefetch
    from states.workspace_lookup import Version, Workspace

NO_STORE: Final = {"Cache-Control": "no-store"}
_OUTPUT_ID: Final = re.compile(r"wsout-([0-9a-f]{32})-((?:[0-9a-f]{2}){1,500})", re.ASCII)
#: This API's name for each type of Terraform; all other types are arrays.
_TYPES: Final = {
    "string": "string", "number": "number", "dynamic": "string", "bool": "boolean",
    "map": "map", "object": "map",
}  # fmt: skip


#: The first word of a type, such as `["map", "string"]`.
_KIND: Final = re.compile(rb'\[?\s*"(\w+)"')
_NULL: Final = msgspec.Raw(b"null")


class _Output(msgspec.Struct):
    """An output with its value as raw JSON, which keeps all digits of numbers."""

    value: msgspec.Raw
    type: msgspec.Raw = _NULL
    sensitive: bool = False


class _Outputs(msgspec.Struct):
    outputs: dict[str, _Output]


class OutputViewSet(OfVersionView):
    """The outputs of a version, of a workspace's current version, and a single output."""

    required_scopes = dict.fromkeys(("current", "list", "retrieve"))

    def prefetch(self, request: Request) -> Prefetch[Any] | None:
        if self.action == "current":
            return super(OfVersionView, self).prefetch(request)
        if self.action == "retrieve":
            found = _OUTPUT_ID.fullmatch(self.kwargs["output_id"])
            version, name = ("", "") if found is None else found.groups()
            self.kwargs["version_id"] = f"sv-{version}"
            self.kwargs["output_id"] = bytes.fromhex(name).decode(errors="replace")
        return super().prefetch(request)

    def current(self, request: Request, **_path: str) -> Response:
        """List the outputs of the current version."""
        return self._list(current_of(self.workspace()), request)

    def list(self, request: Request, **_path: str) -> Response:
        """List the outputs of a version."""
        return self._list(self.version(), request)

    def retrieve(self, request: Request, **_path: str) -> Response:
        """Return an output with its value. A list omits the value of a sensitive output.

        Raises:
            StateVersionNotFound: the output does not exist, or is hidden from the caller.
        """
        version, name = self.version(), self.kwargs["output_id"]
        output = _outputs(version, request).get(name)
        if output is None:
            raise StateVersionNotFound
        described = _described(version, name, output, output.value)
        return Response({"data": described}, headers=NO_STORE)

    def _list(self, version: Version, request: Request) -> Response:
        items = _shown(version, request)
        page = page_of(items, number=1, size=max(1, len(items)), total=len(items))
        return Response(page, headers=NO_STORE)


def included(workspace: Workspace, request: Request) -> list[dict[str, Any]]:
    """Return the outputs of a workspace's current version, for ``included`` in JSON:API."""
    items = _shown(current_of(workspace), request) if workspace.version_id else []
    for item in items:
        item["type"] = "workspace-outputs"
        item["attributes"]["output-type"] = item["attributes"]["type"]
    return items


def _shown(version: Version, request: Request) -> list[dict[str, Any]]:
    """Return the outputs of a version; sensitive outputs have no value."""
    return [
        _described(version, name, output, None if output.sensitive else output.value)
        for name, output in sorted(_outputs(version, request).items())
    ]


def _outputs(version: Version, request: Request) -> dict[str, _Output]:
    """Return the outputs by name, without sensitive outputs if the token lacks `state:secrets`."""
    demand_any(request, Scope.STATE_OUTPUTS, Scope.STATE_READ)
    hide = Scope.STATE_SECRETS not in caller_of(request).scopes
    gzipped = reading.read_version(
        state_id=version.state_id,
        number=version.number,
        actor=Actor.of(request),
        part="outputs",
        secrets=not hide,
    )
    document = sealing.decompress(contents.outputs_document(gzipped, hide=hide))
    return msgspec.json.decode(document, type=_Outputs).outputs


def _described(version: Version, name: str, output: _Output, value: object) -> dict[str, Any]:
    kind = _KIND.match(bytes(output.type))
    attributes = {
        "name": name,
        "sensitive": output.sensitive,
        "type": _TYPES.get(kind[1].decode() if kind else "", "array"),
        "detailed-type": output.type,
        "value": value,
    }
    id_ = f"wsout-{version.id.hex}-{name.encode().hex()}"
    return resource("state-version-outputs", id_, attributes)
