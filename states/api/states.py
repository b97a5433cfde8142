"""One state as people and tools see it; its versions and what is in them are in ``versions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ObjectDoesNotExist
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.audit import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.api.fields import NothingSerializer
from infra_service.api.viewsets import ResourceViewSet, by_id
from states.actions import history, locks
from states.api.catalogue import StateViewSet
from states.api.history_openapi import record_schema
from states.api.sending import SendsDocuments
from states.api.serializers import ForceUnlockSerializer, VersionSerializer
from states.errors import StateNotFound
from states.keeping import reading
from states.models import State, StateVersion

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request

    from states.models import StateQuerySet


@record_schema
class StateRecordViewSet(StateViewSet):
    """States one by one: their record, force-unlock, deletion and what undoes it."""

    required_scopes = {
        **StateViewSet.required_scopes,
        "retrieve": Scope.STATE_READ,
        "destroy": Scope.STATE_ADMIN,
        "force_unlock": Scope.STATE_ADMIN,
        "undelete": Scope.STATE_ADMIN,
    }

    def get_queryset(self) -> StateQuerySet:
        """Return what the caller sees; what is deleted only to bring it back."""
        if self.action == "undelete":
            return State.objects.inside(caller_of(self.request).binding).with_names()
        return super().get_queryset()

    def destroy(self, request: Request, **_path: str) -> Response:
        """Delete a state: it is hidden, and kept for a while."""
        history.delete(**_key(self.get_object()), actor=Actor.of(request))
        return Response(status=204)

    @action(detail=True, methods=["post"], url_path="force-unlock")
    def force_unlock(self, request: Request, **_path: str) -> Response:
        """Break the lock of a state."""
        state = self.get_object()
        options = self.read_options(ForceUnlockSerializer)
        locks.force_unlock(
            **_key(state),
            reason=options["reason"],
            lock_id=options.get("lock_id"),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def undelete(self, request: Request, **_path: str) -> Response:
        """Bring back a deleted state."""
        state = self.get_object()
        self.read_options(NothingSerializer)
        history.undelete(state_id=state.pk, actor=Actor.of(request))
        return self.answer(self.get_object())


def _key(state: State) -> dict[str, uuid.UUID]:
    return {"component_id": state.component_id, "environment_id": state.environment_id}


class OfStateViewSet(SendsDocuments, ResourceViewSet[StateVersion]):
    """What belongs to one state, which the path names."""

    queryset = StateVersion.objects.all()
    serializer_class = VersionSerializer
    filter_backends = ()
    token_kinds = ACCESS_TOKENS

    def state(self) -> State:
        """Return the state, if the caller sees it.

        Raises:
            StateNotFound: else.
        """
        visible = State.objects.visible().inside(caller_of(self.request).binding)
        try:
            return by_id(visible, self.kwargs["state_id"])
        except ObjectDoesNotExist as error:
            raise StateNotFound from error

    @property
    def hide(self) -> bool:
        """Whether sensitive values are hidden from the caller."""
        return Scope.STATE_SECRETS not in caller_of(self.request).scopes

    def read(self, state_id: uuid.UUID, number: int, part: str) -> bytes:
        """Return a version's document, gzip'd; the trail has which part of it was looked at."""
        return reading.read_version(
            state_id=state_id,
            number=number,
            actor=Actor.of(self.request),
            from_replica=True,
            part=part,
            secrets=not self.hide,
        )
