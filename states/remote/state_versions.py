"""State versions: create, upload, list, show and download.

A client announces a version, uploads the document to a URL, and fetches the version. The service
stores the version when the document arrives. Older clients send the document in the announcement,
in base64.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.capabilities import PARAMETER, CapabilityAuthentication, issue, opened
from apikeys.permissions import demand_scope
from apikeys.scopes import Scope
from infra_service.lib.api.jsonapi import InvalidAttribute, Page, decoded_data, linked, resource
from infra_service.lib.api.parameters import InvalidParameter
from states import workspace_lookup as lookup
from states.actions import locks, rules
from states.actions.push import push
from states.api.sending import document_response
from states.document import uploads
from states.document.sealing import MAX_LINEAGE
from states.errors import ContentMd5Mismatch
from states.keeping import reading
from states.models import MAX_SERIAL, StateVersion
from states.remote.documents import time_of, url_of, version_document
from states.remote.errors import LockMissing, StateVersionNotFound
from states.remote.views import RemoteViewSet
from states.workspace_lookup import Version

if TYPE_CHECKING:
    from rest_framework.request import Request

    from infra_service.lib.database.compiled import Prefetch
    from states.document.uploads import Upload
    from states.workspace_lookup import Workspace

_MD5: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
#: Seconds between intermediate versions of a long apply. The `cloud` block stores no intermediate
#: versions if the last response lacks this header, even the 404 before the first version.
_SNAPSHOTS: Final = {"X-Terraform-Snapshot-Interval": "20"}
_OF_WORKSPACE: Final = ("filter[organization][name]", "filter[workspace][name]")
_UPLOAD: Final = "states.remote.upload"
#: The time after a push in which the previous version can be downloaded like the current version. A
#: client requests the current version before it downloads the document, and a push can replace the
#: version in between.
_REPLACED: Final = dt.timedelta(minutes=1)


class _Attributes(msgspec.Struct):
    md5: str
    serial: Annotated[int, msgspec.Meta(ge=0, le=MAX_SERIAL)]
    lineage: Annotated[str, msgspec.Meta(max_length=MAX_LINEAGE)] | None = None
    force: bool = False
    state: bytes | None = None


class _New(msgspec.Struct):
    attributes: _Attributes


class _Announced(msgspec.Struct):
    """The announcement of a version, which the upload URL contains."""

    state_id: uuid.UUID
    lock_id: uuid.UUID
    md5: str
    serial: int
    lineage: str | None
    force: bool

    def store(self, upload: Upload, workspace: Workspace, actor: Actor) -> None:
        """Push the document with the lock ID of the announcement.

        Raises:
            ContentMd5Mismatch: the document's digest differs from the announcement.
            InvalidAttribute: the document's serial or lineage differs from the announcement.
        """
        if upload.md5 != self.md5:
            raise ContentMd5Mismatch
        if upload.head.serial not in (None, self.serial):
            raise InvalidAttribute(f"serial: the document's serial is {upload.head.serial}.")
        if self.lineage and upload.head.lineage not in (None, self.lineage):
            raise InvalidAttribute("lineage: the document has another lineage.")
        push(
            target=workspace.target,
            upload=upload,
            lock_id=self.lock_id,
            force=False,
            must_follow=not self.force,
            actor=actor,
        )


class NewVersionViewSet(RemoteViewSet):
    """New versions and the current version of the workspace in the path."""

    required_scopes = {"create": Scope.STATE_WRITE, "current": Scope.STATE_READ}

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Return the headers of every response, including errors."""
        return super().default_response_headers | _SNAPSHOTS

    def current(self, request: Request, **_path: str) -> Response:
        """Return the current version.

        Raises:
            StateVersionNotFound: the workspace has no version.
        """
        return Response({"data": version_document(current_of(self.workspace()), request)})

    def create(self, request: Request, **_path: str) -> Response:
        """Store the version with its document, or return URLs for the upload of the document.

        Raises:
            StateLocked, StateFrozen: see ``states.actions.rules``.
            LockMissing: the token has not locked the workspace.
        """
        workspace, actor = self.workspace(), Actor.of(request)
        envelope = uploads.read_envelope(request._request)
        given = decoded_data(envelope, _New, allow_duplicates=True).attributes
        if not _MD5.fullmatch(given.md5):
            raise InvalidAttribute("md5: 32 hexadecimal digits in lower case are required.")
        lock_id = locks.held_remotely_by(actor, workspace.state)
        rules.check_lock(workspace.state, lock_id)
        if lock_id is None:
            raise LockMissing
        state_id = workspace.state.pk
        new = _Announced(state_id, lock_id, given.md5, given.serial, given.lineage, given.force)
        if given.state is None:
            document = self._pending(new)
        else:
            new.store(uploads.of_envelope(given.state), workspace, actor)
            query = lookup.version_by_digest(state_id, given.md5)
            document = version_document(_version_of(query), request)
        return Response({"data": document}, 201)

    def _pending(self, announced: _Announced) -> dict[str, Any]:
        capability = issue(caller_of(self.request), _UPLOAD, announced)
        url, json_url = (
            f"{url_of(self.request, name)}?{PARAMETER}={capability}"
            for name in ("upload", "json-upload")
        )
        attributes = {
            "status": "pending",
            "resources-processed": False,
            "created-at": time_of(timezone.now()),
            "serial": announced.serial,
            "lineage": announced.lineage,
            "hosted-state-upload-url": url,
            "hosted-json-state-upload-url": json_url,
        }
        workspace = linked("workspaces", lookup.workspace_id(announced.state_id))
        id_ = lookup.pending_id(announced.state_id, announced.md5)
        return resource("state-versions", id_, attributes, workspace=workspace)


class UploadViewSet(RemoteViewSet):
    """The upload of an announced document; the URL contains the authorization."""

    authentication_classes = (CapabilityAuthentication,)
    capability = (_UPLOAD, _Announced)
    required_scopes = {"document": Scope.STATE_WRITE}

    def accept_claims(self, announced: _Announced) -> Prefetch[Any]:
        """Return the query of the workspace for which the URL was issued."""
        self.announced, self.prefetched = announced, lookup.by_state_id(announced.state_id)
        return self.prefetched

    def document(self, request: Request) -> HttpResponse:
        """Store the version."""
        workspace = self.workspace()
        upload = uploads.read_document(request._request)
        self.announced.store(upload, workspace, Actor.of(request))
        return HttpResponse()


class JsonUploadViewSet(RemoteViewSet):
    """The upload of Terraform's JSON form of a state, which the `cloud` block always sends."""

    public = True
    authentication_classes = ()

    def get_authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401, as with ``CapabilityAuthentication``."""
        return CapabilityAuthentication().authenticate_header(request)

    def drop(self, request: Request) -> HttpResponse:
        """Receive and discard the body, without looking up the token.

        Raises:
            CredentialsMissing, CredentialsInvalid: the URL contains no valid capability.
        """
        opened(request, _UPLOAD)
        uploads.drop_envelope(request._request)
        return HttpResponse()


class OfVersionView(RemoteViewSet):
    """The base of the views for the state version in the path."""

    def prefetch(self, request: Request) -> Prefetch[Any] | None:  # noqa: ARG002 - as inherited
        self.prefetched = lookup.version_by_id(self.kwargs["version_id"])
        return self.prefetched

    def version(self) -> Version:
        """Return the version, if the token's binding includes its state.

        Raises:
            StateVersionNotFound: the version does not exist, or is outside the binding.
        """
        version = _version_of(self.prefetched)
        if not version.is_inside(caller_of(self.request).binding):
            raise StateVersionNotFound
        return version


class VersionViewSet(OfVersionView):
    """A state version, its document, and the list of the versions of a workspace."""

    required_scopes = dict.fromkeys(("list", "retrieve", "download"), Scope.STATE_READ)

    def prefetch(self, request: Request) -> Prefetch[Any] | None:
        if self.action == "retrieve":
            return super().prefetch(request)
        if self.action == "download":
            self.prefetched = lookup.document_by_id(self.kwargs["version_id"])
            return self.prefetched
        organization, name = (request.query_params.get(each, "") for each in _OF_WORKSPACE)
        self.kwargs["name"] = name
        self.prefetched = lookup.by_name(organization, name)
        return self.prefetched

    def list(self, request: Request, **_path: str) -> Response:
        """List the versions, the newest first.

        Raises:
            InvalidParameter: a query parameter for the workspace is missing.
        """
        for parameter in _OF_WORKSPACE:
            if not request.query_params.get(parameter):
                raise InvalidParameter(parameter, "The parameter is required.")
        page, workspace = Page(request, *_OF_WORKSPACE), self.workspace()
        versions = StateVersion.objects.filter(state_id=workspace.state.pk)
        shown = versions if workspace.version_id else versions.none()
        rows = lookup.version_rows(shown).order_by("-number")
        return page.answer(rows, lambda row: version_document(Version(*row), request))

    def retrieve(self, request: Request, **_path: str) -> Response:
        """Return the version."""
        return Response({"data": version_document(self.version(), request)})

    def download(self, request: Request, **_path: str) -> HttpResponse:
        """Return the document, exactly as it was pushed. Former versions require `state:secrets`.

        Raises:
            StateVersionNotFound: the version does not exist, or is outside the binding.
        """
        query = self.prefetched
        row = None if query is None else query.peek()
        if query is None or row is None:
            raise StateVersionNotFound
        number, pushed_at, *place = row[-len(reading.PLACE) - 2 :]
        if not caller_of(request).binding.allows_state(*place):
            raise StateVersionNotFound
        is_current = row[2] == number
        was_current = row[2] == number - 1 and timezone.now() - pushed_at < _REPLACED
        if not (is_current or was_current):
            demand_scope(request, Scope.STATE_SECRETS)
        gzipped = reading.read_current(current=query, actor=Actor.of(request))
        return document_response(request, gzipped)


def current_of(workspace: Workspace) -> Version:
    """Return the current version.

    Raises:
        StateVersionNotFound: the workspace has no version.
    """
    if workspace.version_id is None:
        raise StateVersionNotFound
    return Version.of_current(workspace)


def _version_of(query: Prefetch[Any] | None) -> Version:
    row = None if query is None else query.row()
    if row is None:
        raise StateVersionNotFound
    return Version(*row)
