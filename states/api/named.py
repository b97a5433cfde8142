"""The state backend at addresses with names, ``state/at/{component}/{environment}``.

The query that finds the state also resolves the names to ids. All later steps use the ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema

from apikeys.authentication import caller_of
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.uuids import uuid7
from states import addresses
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
from states.targets import StateTarget

if TYPE_CHECKING:
    from rest_framework.request import Request

    from infra_service.lib.database.compiled import Prefetch
    from states.models import State


class ByNames(BackendView):
    """A mixin that finds the state of an address with names."""

    def prefetch(self, request: Request) -> Prefetch[State] | None:
        names = Names(**self.kwargs)
        if names.is_valid and not _has_escaped_slash(request):
            self.prefetched = self.query.by_names(names)
        return self.prefetched

    def target(self) -> StateTarget:
        """Return the state with these names, and with new ids for unregistered entries.

        Raises:
            InvalidParameter: a name has the wrong form.
            StateNotFound: the state is outside the binding, or a read finds no state.
        """
        binding = caller_of(self.request).binding
        names = Names(**self.kwargs)
        if self.prefetched is None:
            names.refuse(binding)
            raise _no_address()
        row = self.prefetched.row()
        if row is not None:
            place = self.place_of(row)
        elif self.is_read:
            raise _not_found_at(names)
        else:
            place = addresses.find_place(names)
        if not binding.allows_state(*place):
            raise _not_found_at(names)
        target = StateTarget(
            component_id=place.component_id or uuid7(),
            environment_id=place.environment_id or uuid7(),
            names=names if row is None else None,
        )
        # From here on, ids identify the state: names can change, and these ids passed the check of
        # the binding.
        target.prefetched = self.query.by_ids(**target.ids)
        target.prefetched.store(row)
        return target


def _has_escaped_slash(request: Request) -> bool:
    """Return whether a name contains a slash, sent as ``%2F``. gunicorn provides the raw path."""
    path = request.META.get("RAW_URI", "").partition("?")[0]
    return "%2f" in path.lower()


def _no_address() -> InvalidParameter:
    return InvalidParameter(
        "path", f"Not a valid address: use /api/v1/state/at/ followed by {addresses.FORMS}."
    )


def _not_found_at(names: Names) -> StateNotFound:
    kinds = (f'{kind} "{slug}"' for kind, slug in names.given.items())
    return StateNotFound(f"The state of {', '.join(kinds)} does not exist.")


@state_schema(BY_NAMES)
class StateAtView(ByNames, StateView):
    """The state of a component without an application, by names."""


@lock_schema(BY_NAMES)
class StateLockAtView(ByNames, LockView):
    """The lock of the state of a component without an application, by names."""


@outputs_document_schema(BY_NAMES)
class OutputsAtView(ByNames, OutputsView):
    """The outputs of the state of a component without an application, by names."""


@state_schema(BY_NAMES_IN_APPLICATION)
class StateInApplicationView(ByNames, StateView):
    """The state of a component in an application, by names."""


@lock_schema(BY_NAMES_IN_APPLICATION)
class StateLockInApplicationView(ByNames, LockView):
    """The lock of the state of a component in an application, by names."""


@outputs_document_schema(BY_NAMES_IN_APPLICATION)
class OutputsInApplicationView(ByNames, OutputsView):
    """The outputs of the state of a component in an application, by names."""


@extend_schema(exclude=True)
class NoAddressView(StateView):
    """The view of invalid addresses below ``state/at/``."""

    reads_bodies_of = frozenset()

    def prefetch(self, request: Request) -> None:
        """Prefetch nothing."""

    def target(self) -> StateTarget:
        """Reject the request.

        Raises:
            InvalidParameter: always.
        """
        raise _no_address()
