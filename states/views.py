"""The HTTP state backend of Terraform and OpenTofu. The views translate; the rules are elsewhere.

Statuses are chosen for what the client makes of them: it takes only 200 for LOCK and UNLOCK, and
follows any redirect with a GET, so there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers
from rest_framework.response import Response
from rest_framework.views import APIView

from apikeys import bodies
from apikeys.audit import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS, demand_scope
from apikeys.scopes import Scope
from states import actions, documents, lockinfo, uploads
from states.errors import InvalidParameter, StateNotFound
from states.lockinfo import LockInfo
from states.schema import lock_schema, state_schema

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


class BackendView(APIView):
    """What the backend's views share: who is let in, which state is meant, LOCK and UNLOCK."""

    accepts_basic = True
    token_kinds = ACCESS_TOKENS

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer, and let go of the document.

        DRF's view, request and response refer to each other, so that a pulled document of
        megabytes would stay until the garbage collector comes round.
        """
        response = super().dispatch(request, *args, **kwargs)
        del self.response
        return response

    def key(self) -> dict[str, uuid.UUID]:
        """Return the component's and the environment's id.

        Raises:
            InvalidParameter: one is no UUID.
            StateNotFound: the token is bound elsewhere.
        """
        names = ("component_id", "environment_id")
        key = {name: _uuid(name, self.kwargs[name]) for name in names}
        if not caller_of(self.request).binding.allows_state(**key):
            raise StateNotFound
        return key

    def take_lock(self, request: Request) -> Response:
        """Lock the state: 200 with the LockInfo, or 423 with the holder's."""
        key, actor = self.key(), Actor.of(request)
        info = LockInfo.parse(bodies.read_body(request._request, lockinfo.MAX_BYTES))
        return Response(actions.lock(**key, info=info, actor=actor).as_dict())

    def release_lock(self, request: Request) -> HttpResponse:
        """Release the lock that the body names; an empty body is ``terraform force-unlock``."""
        key, actor = self.key(), Actor.of(request)
        body = bodies.read_body(request._request, lockinfo.MAX_BYTES)
        if body:
            actions.unlock(**key, lock_id=LockInfo.parse(body).uuid, actor=actor)
        else:
            demand_scope(request, Scope.STATE_ADMIN)
            actions.force_unlock(**key, reason="terraform force-unlock", actor=actor)
        return HttpResponse()


@state_schema
class StateBackendView(BackendView):
    """The state of a component in an environment, as Terraform's http backend wants it."""

    http_method_names = ["get", "head", "post", "delete", "lock", "unlock"]
    required_scopes = {
        "GET": Scope.STATE_READ,
        "POST": Scope.STATE_WRITE,
        "DELETE": Scope.STATE_ADMIN,
        "LOCK": Scope.STATE_WRITE,
        "UNLOCK": Scope.STATE_WRITE,
    }

    def get(self, request: Request, **_path: str) -> HttpResponse:
        """Return the current document, exactly as it was pushed."""
        gzipped = actions.read_current(**self.key(), actor=Actor.of(request))
        headers = {"Cache-Control": "no-store"}
        if _accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
            content = gzipped
        else:
            content = documents.decompress(gzipped)
        response = HttpResponse(content, "application/json", headers=headers)
        patch_vary_headers(response, ("Accept-Encoding",))
        return response

    def post(self, request: Request, **_path: str) -> HttpResponse:
        """Store a new state version; the body is the complete document."""
        key, actor = self.key(), Actor.of(request)
        lock_id = request.query_params.get("ID")
        held = None if lock_id is None else _uuid("ID", lock_id)
        force = request.query_params.get("force") == "true"
        if force:
            demand_scope(request, Scope.STATE_ADMIN)
        upload = uploads.read_document(request._request)
        actions.push(**key, upload=upload, lock_id=held, force=force, actor=actor)
        return HttpResponse()

    def delete(self, request: Request, **_path: str) -> HttpResponse:
        """Hide the state; its history is kept for a while, and a push revives it."""
        actions.delete(**self.key(), actor=Actor.of(request))
        return HttpResponse()

    def lock(self, request: Request, **_path: str) -> Response:
        """Lock the state."""
        return self.take_lock(request)

    def unlock(self, request: Request, **_path: str) -> HttpResponse:
        """Unlock the state."""
        return self.release_lock(request)


@lock_schema
class StateLockView(BackendView):
    """LOCK and UNLOCK as POST and DELETE, for proxies that refuse unknown methods."""

    http_method_names = ["post", "delete"]
    required_scopes = {"POST": Scope.STATE_WRITE, "DELETE": Scope.STATE_WRITE}

    def post(self, request: Request, **_path: str) -> Response:
        """Lock the state."""
        return self.take_lock(request)

    def delete(self, request: Request, **_path: str) -> HttpResponse:
        """Unlock the state."""
        return self.release_lock(request)


def _uuid(name: str, text: str) -> uuid.UUID:
    value = lockinfo.parse_uuid(text)
    if value is None:
        raise InvalidParameter(name, "not a UUID in the form 8-4-4-4-12")
    return value


def _accepts_gzip(request: Request) -> bool:
    """Whether the client takes gzip (RFC 9110 §12.5.3)."""
    for entry in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = entry.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return weight.strip("0.") != "" or not weight
    return False
