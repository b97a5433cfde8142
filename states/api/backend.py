"""The HTTP state backend for Terraform and OpenTofu.

The rules are in ``states.actions``. The client determines the status codes: it accepts only 200 for
LOCK and UNLOCK. It follows any redirect with a GET, so the backend never redirects.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS, demand_scope
from apikeys.scopes import Scope
from infra_service.lib.api import bodies
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.api.parameters import InvalidParameter
from states import addresses, lockinfo
from states.actions import history, locks, removal
from states.actions.push import push
from states.addresses import FORMS, Place
from states.api.backend_openapi import (
    BY_IDS,
    lock_schema,
    outputs_document_schema,
    state_schema,
)
from states.api.sending import OUTPUTS_DOCUMENT, DocumentAPIView, document_response
from states.document import contents, uploads
from states.errors import StateNotFound
from states.keeping import reading
from states.lockinfo import LockInfo
from states.models import State
from states.targets import STATE, StateTarget

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from rest_framework.request import Request

    from infra_service.lib.database.compiled import Prefetch
    from states.addresses import StateQuery


_COLUMNS: Final = [field.attname for field in State._meta.concrete_fields]
_PLACE: Final = itemgetter(*map(_COLUMNS.index, reading.PLACE))
_BY_NAMES: Final = f"; the address of a state by names is /api/v1/state/at/ followed by {FORMS}"


class BackendView(DocumentAPIView):
    """Shared base of the backend's views: authentication, target state, LOCK and UNLOCK."""

    accepts_basic = True
    token_kinds = ACCESS_TOKENS
    #: The query that runs in one round trip with the query for the caller. It fetches the state, or
    #: for a read the document.
    prefetched: Prefetch[State] | None = None

    def prefetch(self, request: Request) -> Prefetch[State] | None:  # noqa: ARG002 - of all views
        """Return the query that ``TokenAuthentication`` adds to its own round trip."""
        ids = {name: parse_uuid(text) for name, text in self.kwargs.items()}
        if None not in ids.values():
            self.prefetched = self.query.by_ids(**ids)
        return self.prefetched

    def target(self) -> StateTarget:
        """Return the state at the address, which the token's binding must include.

        Raises:
            InvalidParameter: an id is not a UUID.
            StateNotFound: the state is outside the binding.
        """
        component_id, environment_id = self._id("component_id"), self._id("environment_id")
        prefetched = self.prefetched or self.query.by_ids(
            component_id=component_id, environment_id=environment_id
        )
        binding = caller_of(self.request).binding
        application_id = None
        if binding.application_ids is not None:
            row = prefetched.peek()
            application_id = (
                addresses.application_of(component_id)
                if row is None
                else self.place_of(row).application_id
            )
        if not binding.allows_state(component_id, environment_id, application_id):
            raise StateNotFound
        return StateTarget(
            component_id=component_id, environment_id=environment_id, prefetched=prefetched
        )

    @property
    def is_read(self) -> bool:
        """Return whether the request reads the current document."""
        return self.request.method in ("GET", "HEAD")

    @property
    def query(self) -> StateQuery:
        """Return the query of the state, or for a read of its current document."""
        return reading.CURRENT if self.is_read else STATE

    def place_of(self, row: Sequence[Any]) -> Place:
        """Return the ids of the entries that the state of a prefetched row belongs to."""
        return Place(*(row[-len(reading.PLACE) :] if self.is_read else _PLACE(row)))

    def _id(self, name: str) -> uuid.UUID:
        return _uuid(name, self.kwargs[name], _BY_NAMES)

    def lock(self, request: Request, **_path: str) -> Response:
        """Lock the state. Return 200 with LockInfo, or 423 with LockInfo of the current lock."""
        target, actor = self.target(), Actor.of(request)
        info = LockInfo.parse(bodies.read_body(request._request, lockinfo.MAX_BYTES))
        locked = locks.lock(target=target, info=info, actor=actor)
        return Response(locked.as_dict())

    def unlock(self, request: Request, **_path: str) -> HttpResponse:
        """Release the lock with the ID in the body. ``terraform force-unlock`` sends no body."""
        target, actor = self.target(), Actor.of(request)
        body = bodies.read_body(request._request, lockinfo.MAX_BYTES)
        if body:
            lock_id = LockInfo.parse(body).uuid
            locks.unlock(target=target, lock_id=lock_id, actor=actor)
        else:
            demand_scope(request, Scope.STATE_ADMIN)
            reason = "terraform force-unlock"
            locks.force_unlock(target=target, reason=reason, actor=actor)
            if (state := target.find(actor)) is not None:
                removal.unregister(state, actor)
        return HttpResponse()


class StateView(BackendView):
    """The document and the lock of a state, for Terraform's ``http`` backend."""

    http_method_names = ["get", "head", "post", "delete", "lock", "unlock"]
    reads_bodies_of = frozenset({"POST", "LOCK", "UNLOCK"})
    required_scopes = {
        "GET": Scope.STATE_READ,
        "POST": Scope.STATE_WRITE,
        "DELETE": Scope.STATE_ADMIN,
        "LOCK": Scope.STATE_WRITE,
        "UNLOCK": Scope.STATE_WRITE,
    }

    def get(self, request: Request, **_path: str) -> HttpResponse:
        """Return the current document, exactly as it was pushed."""
        gzipped = reading.read_current(current=self.target().prefetch(), actor=Actor.of(request))
        return document_response(request, gzipped)

    def post(self, request: Request, **_path: str) -> HttpResponse:
        """Store a new version of the state. The body is the complete document."""
        target, actor = self.target(), Actor.of(request)
        lock_id = _parameter(request, "ID")
        held = None if lock_id is None else _uuid("ID", lock_id)
        force = _parameter(request, "force")
        if force not in (None, "true", "false"):
            raise InvalidParameter("force", "must be true or false")
        if force == "true":
            demand_scope(request, Scope.STATE_ADMIN)
        upload = uploads.read_document(request._request)
        push(target=target, upload=upload, lock_id=held, force=force == "true", actor=actor)
        return HttpResponse()

    def delete(self, request: Request, **_path: str) -> HttpResponse:
        """Delete the state. A push within the retention period restores its history."""
        history.delete(target=self.target(), actor=Actor.of(request))
        return HttpResponse()


class LockView(BackendView):
    """LOCK and UNLOCK as POST and DELETE, for proxies that refuse unknown methods."""

    http_method_names = ["post", "delete"]
    reads_bodies_of = frozenset({"POST", "DELETE"})
    required_scopes = {"POST": Scope.STATE_WRITE, "DELETE": Scope.STATE_WRITE}

    def post(self, request: Request, **_path: str) -> Response:
        """Lock the state."""
        return self.lock(request)

    def delete(self, request: Request, **_path: str) -> HttpResponse:
        """Unlock the state."""
        return self.unlock(request)


class OutputsView(BackendView):
    """The outputs of a state, as a document without resources."""

    http_method_names = ["get", "head"]
    required_scopes = {"GET": Scope.STATE_OUTPUTS}

    def get(self, request: Request, **_path: str) -> HttpResponse:
        """Return the current document without its resources, for ``terraform_remote_state``."""
        hide = Scope.STATE_SECRETS not in caller_of(request).scopes
        gzipped = reading.read_current(
            current=self.target().prefetch(),
            actor=Actor.of(request),
            part=OUTPUTS_DOCUMENT,
            secrets=not hide,
        )
        return document_response(request, contents.outputs_document(gzipped, hide=hide))


@state_schema(BY_IDS)
class StateBackendView(StateView):
    """The state of a component in an environment, by their ids."""


@lock_schema(BY_IDS)
class StateLockView(LockView):
    """The lock of a state."""


@outputs_document_schema(BY_IDS)
class OutputsBackendView(OutputsView):
    """The outputs of a state."""


def _parameter(request: Request, name: str) -> str | None:
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise InvalidParameter(name, "repeated parameter")
    return values[0] if values else None


def _uuid(name: str, text: str, advice: str = "") -> uuid.UUID:
    value = parse_uuid(text)
    if value is None:
        raise InvalidParameter(name, f"not a UUID in the form 8-4-4-4-12{advice}")
    return value
