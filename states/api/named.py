"""The state backend at addresses of names, ``state/at/{component}/{environment}``.

Names lead to the ids of the same state, in the statement that finds it, and then all goes the way
of the ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from uuid_utils.compat import uuid7

from apikeys.authentication import caller_of
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.database.compiled import Prefetch
from states import addresses
from states.actions.registration import STATE, STATE_AT
from states.addresses import Names
from states.api.backend import BackendView, LockView, OutputsView, StateView
from states.api.backend_openapi import (
    BY_NAMES,
    BY_NAMES_IN_APPLICATION,
    lock_schema,
    outputs_document_schema,
    state_schema,
)
from states.errors import StateNotFound
from states.keeping import reading

if TYPE_CHECKING:
    from rest_framework.request import Request

    from states.models import State, StateKey


class ByNames(BackendView):
    """Which state is meant, at an address of names."""

    #: The look at the state of these names, which brings its ids.
    named: Prefetch[State] | None = None

    def prefetch(self, request: Request) -> Prefetch[State] | None:
        names = Names(**self.kwargs)
        if names.is_valid and not _has_escaped_slash(request):
            at = reading.CURRENT_AT if self.is_read else STATE_AT
            query = at[names.application is not None]
            self.named = Prefetch(query, **names.given)
        return self.named

    def key(self) -> StateKey:
        """Return the ids of what is named, and new ones for what is to be registered.

        Raises:
            InvalidParameter: a name has the wrong form.
            StateNotFound: the token is bound elsewhere, or nothing is there to be read.
        """
        binding = caller_of(self.request).binding
        if self.named is None:
            Names(**self.kwargs).refuse(binding)
            raise _no_address()
        row = self.named.row()
        if row is not None:
            place = self.place_of(row)
        elif self.is_read:
            raise StateNotFound
        else:
            self.names = Names(**self.kwargs)
            place = addresses.find_place(self.names)
        if not binding.allows_state(*place):
            raise StateNotFound
        key: StateKey = {
            "component_id": place.component_id or uuid7(),
            "environment_id": place.environment_id or uuid7(),
        }
        self.look = Prefetch(reading.CURRENT if self.is_read else STATE, **key)
        self.look.store(row)
        return key


def _has_escaped_slash(request: Request) -> bool:
    """Whether a slash was sent as ``%2F``, for one within a name; gunicorn tells."""
    path = request.META.get("RAW_URI", "").partition("?")[0]
    return "%2f" in path.lower()


def _no_address() -> InvalidParameter:
    return InvalidParameter(
        "path", f"Not an address: /api/v1/state/at/ and then {addresses.FORMS}."
    )


@state_schema(BY_NAMES)
class StateAtView(ByNames, StateView):
    """The state of a component without application, by names."""


@lock_schema(BY_NAMES)
class StateLockAtView(ByNames, LockView):
    """Its lock."""


@outputs_document_schema(BY_NAMES)
class OutputsAtView(ByNames, OutputsView):
    """Its outputs."""


@state_schema(BY_NAMES_IN_APPLICATION)
class StateInApplicationView(ByNames, StateView):
    """The state of a component of an application, by names."""


@lock_schema(BY_NAMES_IN_APPLICATION)
class StateLockInApplicationView(ByNames, LockView):
    """Its lock."""


@outputs_document_schema(BY_NAMES_IN_APPLICATION)
class OutputsInApplicationView(ByNames, OutputsView):
    """Its outputs."""


@extend_schema(exclude=True)
class NoAddressView(StateView):
    """What begins like an address of names, and is none."""

    reads_bodies_of = frozenset()

    def prefetch(self, request: Request) -> None:
        """Ask for nothing along."""

    def key(self) -> StateKey:
        """Refuse.

        Raises:
            InvalidParameter: always.
        """
        raise _no_address()
