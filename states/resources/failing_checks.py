"""Events for ``check`` blocks that start to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys import audit
from apikeys.actors import Actor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from states.models import State


def report_failing_checks(state: State, failing: Sequence[str]) -> None:
    """Record an event if checks fail that did not fail in the previously indexed version.

    Call this in a transaction, before the row of the state is updated for the new version.
    """
    is_new = state.indexed_number < state.version_number
    # A version that was indexed with rules before number 7 has no engine and no failing checks.
    is_comparable = state.engine is not None or state.indexed_number == 0
    if not (is_new and is_comparable):
        return
    known = set(state.failing_checks or ())
    if new := [address for address in failing if address not in known]:
        audit.authorize_and_record(
            Actor.of_command("index_states"),
            "state.check_failed",
            state.pk,
            version=state.version_number,
            checks=new,
        )
