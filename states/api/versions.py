"""The versions of a state and their contents: documents, differences, outputs, resources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS, demand_scope
from apikeys.scopes import Scope
from infra_service.lib.api.idempotency import idempotent
from infra_service.lib.api.pagination import PageRequest
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.api.viewsets import ResourceViewSet
from states.actions import history
from states.api.difference_answers import ComparedVersion, Difference, DifferencePage
from states.api.sending import OUTPUTS_DOCUMENT, DocumentAPIView, document_response
from states.api.serializers import RestoreSerializer, VersionSerializer
from states.api.states import visible_state
from states.api.states_openapi import contents_schema, outputs_document_schema, versions_schema
from states.document import contents
from states.errors import VersionNotFound
from states.keeping import reading
from states.models import State, StateVersion
from states.models.imported_versions import with_imported

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpResponse
    from rest_framework.request import Request

    from states.document.contents import Page

_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class OfStateViewSet(DocumentAPIView, ResourceViewSet[StateVersion]):
    """The base of the views for versions of the state in the path."""

    queryset = StateVersion.objects.all()
    serializer_class = VersionSerializer
    filter_backends = ()
    token_kinds = ACCESS_TOKENS

    def state(self) -> State:
        """Return the state, if it is within the caller's binding.

        Raises:
            StateNotFound: the state is outside the caller's binding.
        """
        return visible_state(self.request, self.kwargs["state_id"])

    def get_queryset(self) -> QuerySet[StateVersion]:
        return StateVersion.objects.filter(state_id=self.state().pk)

    def get_object(self) -> StateVersion:
        """Return the version in the path.

        Raises:
            StateNotFound, VersionNotFound: the state or version does not exist.
        """
        return _version_of(self.get_queryset(), self.kwargs["number"])

    @property
    def hide(self) -> bool:
        """Return whether sensitive values are hidden from the caller."""
        return Scope.STATE_SECRETS not in caller_of(self.request).scopes

    def read(self, state_id: uuid.UUID, number: int, part: str) -> bytes:
        """Return a version's gzipped document. The audit log records the part that is read."""
        return reading.read_version(
            state_id=state_id,
            number=number,
            actor=Actor.of(self.request),
            from_replica=True,
            part=part,
            secrets=not self.hide,
        )


@versions_schema
class VersionViewSet(OfStateViewSet):
    """The versions of a state, the newest first."""

    resource, resource_plural = "version", "versions"
    page_key = ("-number",)
    required_scopes = {
        "list": Scope.STATE_READ,
        "retrieve": Scope.STATE_READ,
        "document": Scope.STATE_READ,
        "diff": Scope.STATE_READ,
        "restore": Scope.STATE_WRITE,
    }

    @property
    def list_parameters(self) -> tuple[str, ...]:
        """Return the accepted query parameters, except the parameters of pagination."""
        return ("against",) if self.action == "diff" else ()

    def get_queryset(self) -> QuerySet[StateVersion]:
        return with_imported(super().get_queryset())

    @action(detail=True)
    def document(self, request: Request, **_path: str) -> HttpResponse:
        """Return a version's document, including its secrets."""
        demand_scope(request, Scope.STATE_SECRETS)
        version = self.get_object()
        gzipped = reading.read_version(
            state_id=version.state_id, number=version.number, actor=Actor.of(request)
        )
        return document_response(request, gzipped)

    @action(detail=True)
    def diff(self, request: Request, **_path: str) -> Response:
        """Return the changes between two versions, by default from the previous version."""
        page_request = PageRequest.read(request, self, {2})
        versions = self.get_queryset()
        after = _version_of(versions, self.kwargs["number"])
        number, start = page_request.position or (None, 0)
        before = (
            _base_version(versions, after, request) if number is None else _at(versions, number)
        )
        old = None if before is None else self.read(before.state_id, before.number, "diff")
        page = contents.diff(
            old,
            self.read(after.state_id, after.number, "diff"),
            start=start,
            size=page_request.size,
            hide=self.hide,
        )
        difference = Difference(
            before=None if before is None else self._side(before, page.versions[0]),
            after=self._side(after, page.versions[1]),
            summary=page.summary,
            metadata=page.metadata,
            outputs=page.outputs,
            resources=page.resources,
            check_results=page.check_results,
        )
        position = before.number if before else 0, start + page_request.size
        token = page_request.token(*position) if page.more else ""
        return _private(DifferencePage(diff=difference, next_page_token=token))

    def _side(self, version: StateVersion, terraform_version: str | None) -> ComparedVersion:
        shown = self.get_serializer(version).data
        return msgspec.convert({**shown, "terraform_version": terraform_version}, ComparedVersion)

    @action(detail=True, methods=["post"])
    @idempotent
    def restore(self, request: Request, **_path: str) -> Response:
        """Restore the content of an old version as a new current version."""
        version = self.get_object()
        options = self.read_options(RestoreSerializer)
        restored = history.restore(
            state_id=version.state_id,
            number=version.number,
            lock_id=options.pop("lock_id", None),
            actor=Actor.of(request),
            **options,
        )
        return self.answer(restored)


def _version_of(versions: QuerySet[StateVersion], text: str) -> StateVersion:
    """Return the version with the number in the path.

    Raises:
        VersionNotFound: the version does not exist.
    """
    found = versions.filter(number=int(text)).first() if _NUMBER.fullmatch(text) else None
    if found is None:
        raise VersionNotFound
    return found


def _at(versions: QuerySet[StateVersion], number: int) -> StateVersion | None:
    """Return the base version of the previous pages, or None for the number 0."""
    return _version_of(versions, str(number)) if number else None


def _base_version(
    versions: QuerySet[StateVersion], after: StateVersion, request: Request
) -> StateVersion | None:
    """Return the requested base version.

    The default is the previous version, or None for the first version.
    """
    text = request.query_params.get("against")
    if not text:
        return versions.filter(number__lt=after.number).order_by("-number").first()
    if not _NUMBER.fullmatch(text):
        raise InvalidParameter("against", "not the number of a version")
    return _version_of(versions, text)


def _current_number(state: State) -> int:
    """Return the number of the current version.

    Raises:
        VersionNotFound: the state was registered or locked, but never pushed.
    """
    if state.current_version_id is None:
        raise VersionNotFound("The state has no version yet. The first push stores a version.")
    return state.version_number


def _private(body: Any) -> Response:
    """Return a response with values of a state, which caches must not store."""
    return Response(body, headers={"Cache-Control": "no-store"})


@contents_schema
class ContentsViewSet(OfStateViewSet):
    """Contents of the current version. All pages show the version of the first page."""

    required_scopes = {"outputs": Scope.STATE_READ, "resources": Scope.STATE_READ}

    @action(detail=True)
    def outputs(self, request: Request, **_path: str) -> Response:
        """List the outputs of the current version."""
        return self._page(request, contents.outputs)

    @action(detail=True)
    def resources(self, request: Request, **_path: str) -> Response:
        """List the resource instances of the current version."""
        return self._page(request, contents.resources)

    def _page(self, request: Request, find: Callable[..., Page]) -> Response:
        page_request = PageRequest.read(request, self, {2})
        state = self.state()
        number, start = page_request.position or (_current_number(state), 0)
        gzipped = self.read(state.pk, number, self.action)
        page = find(gzipped, start=start, size=page_request.size, hide=self.hide)
        token = page_request.token(number, start + page_request.size) if page.more else ""
        return _private(
            {self.action: page.items, "version_number": number, "next_page_token": token}
        )


@outputs_document_schema
class OutputsDocumentViewSet(OfStateViewSet):
    """The outputs of the current version, as a document without resources."""

    # Terraform's data source supports no other authentication.
    accepts_basic = True
    required_scopes = {"outputs_document": Scope.STATE_OUTPUTS}

    @action(detail=True)
    def outputs_document(self, request: Request, **_path: str) -> HttpResponse:
        """Return the current document without its resources, for ``terraform_remote_state``."""
        state = self.state()
        gzipped = self.read(state.pk, _current_number(state), OUTPUTS_DOCUMENT)
        return document_response(request, contents.outputs_document(gzipped, hide=self.hide))
