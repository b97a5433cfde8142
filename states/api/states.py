"""State records: list, get, force-unlock, freeze, delete and undelete.

The module ``versions`` provides the versions of a state and their contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.fields import NothingSerializer
from infra_service.lib.api.viewsets import ResourceViewSet, by_id
from states.actions import freezing, history, locks
from states.api.filters import StateFilters, with_ids
from states.api.serializers import (
    ForceUnlockSerializer,
    FreezeOptionsSerializer,
    StateSerializer,
    UnfreezeSerializer,
)
from states.api.states_openapi import states_schema
from states.errors import StateNotFound
from states.models import State
from states.targets import StateTarget

if TYPE_CHECKING:
    from rest_framework.request import Request

    from states.models import StateQuerySet


def visible_state(request: Request, given: str) -> State:
    """Return the state with the id in a path, if it is within the caller's binding.

    Raises:
        StateNotFound: the state does not exist, is deleted, or is outside the caller's binding.
    """
    try:
        return by_id(State.objects.visible().inside(caller_of(request).binding), given)
    except ObjectDoesNotExist as error:
        raise StateNotFound from error


@states_schema
class StateViewSet(ResourceViewSet[State]):
    """State records, force-unlock, freezes, deletion and undeletion.

    Deleted states, and states outside the token's binding, are hidden.
    """

    queryset = State.objects.visible().with_names()
    serializer_class = StateSerializer
    filterset_class = StateFilters
    prepared = staticmethod(with_ids)
    resource, resource_plural = "state", "states"
    other_keys = (("updated_at", "id"), ("lock_acquired_at", "id"))
    order_names = {"lock_acquired_at": "lock.acquired_at"}
    moving_orders = ("updated_at", "lock.acquired_at")
    scoped_by = ("deleted_at",)
    # The index of ``UsedVersion`` finds the states if few match.
    searched_fields = ("provider", "module")
    not_found = StateNotFound
    names_missing = True
    token_kinds = ACCESS_TOKENS
    required_scopes = {
        "list": Scope.STATE_READ,
        "retrieve": Scope.STATE_READ,
        "destroy": Scope.STATE_ADMIN,
        "force_unlock": Scope.STATE_ADMIN,
        "freeze": Scope.STATE_ADMIN,
        "unfreeze": Scope.STATE_ADMIN,
        "undelete": Scope.STATE_ADMIN,
    }

    def get_queryset(self) -> StateQuerySet:
        """Return the states within the caller's binding.

        Deleted states are included for ``undelete``, for ``force_unlock``, because a client can
        lock a deleted state for a push, and for ``unfreeze``, because a server of the previous
        release can delete a frozen state.
        """
        deleted_too = self.action in {"undelete", "force_unlock", "unfreeze"}
        states: Any = State.objects.with_names() if deleted_too else super().get_queryset()
        inside: StateQuerySet = states.inside(caller_of(self.request).binding)
        return inside

    def destroy(self, request: Request, **_path: str) -> Response:
        """Delete a state. It is hidden, and kept for the retention period.

        A state without versions is removed immediately.
        """
        history.delete(target=StateTarget.of(self.get_object()), actor=Actor.of(request))
        return Response(status=204)

    @action(detail=True, methods=["post"], url_path="force-unlock")
    def force_unlock(self, request: Request, **_path: str) -> Response:
        """Force-unlock a state."""
        state = self.get_object()
        options = self.read_options(ForceUnlockSerializer)
        locks.force_unlock(
            target=StateTarget.of(state),
            reason=options["reason"],
            lock_id=options.get("lock_id"),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def freeze(self, request: Request, **_path: str) -> Response:
        """Freeze a state. Only the owner of its current lock can still change it."""
        state = self.get_object()
        options = self.read_options(FreezeOptionsSerializer)
        freezing.freeze(
            state_id=state.pk,
            reason=options["reason"],
            expected_until=options.get("expected_until"),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def unfreeze(self, request: Request, **_path: str) -> Response:
        """Unfreeze a state."""
        state = self.get_object()
        options = self.read_options(UnfreezeSerializer)
        freezing.unfreeze(state_id=state.pk, actor=Actor.of(request), **options)
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def undelete(self, request: Request, **_path: str) -> Response:
        """Restore a deleted state."""
        state = self.get_object()
        self.read_options(NothingSerializer)
        history.undelete(state_id=state.pk, actor=Actor.of(request))
        return self.answer(self.get_object())
