"""Some 20,000 states, as the demo data has them."""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.utils import timezone

from states.models import Application, Component, State, StateVersion
from tests.support.multiplied import another, multiply, renumbered
from tools.bench.bulk_states import load_states

STATES = 20_000
_FEW = 2_000
_TIMES = STATES // _FEW
# The demo data makes a state each ten seconds, four of a component, and eighty of an application.
_LATER = f"n * interval '{10 * _FEW} seconds'"
_MILLISECONDS = f"(extract(epoch from created_at + {_LATER}) * 1000)::bigint"
_LATER_ID = f"(lpad(to_hex({_MILLISECONDS}), 12, '0') || substr(replace(id::text, '-', ''), 13))"
_OF_THE_STATE = (
    "(SELECT state.id FROM states_state state "
    f"WHERE state.current_version_id = {another('states_stateversion.id')})"
)


def make_many_states() -> None:
    """Make 2,000 states and nine copies of each, whose documents cannot be opened."""
    load_states(_FEW, lambda _done: None)
    multiply(
        Application,
        _TIMES,
        id=another("id"),
        name=renumbered("name", _FEW // 80),
        slug=renumbered("slug", _FEW // 80),
    )
    multiply(
        Component,
        _TIMES,
        id=another("id"),
        name=renumbered("name", _FEW // 4),
        slug=renumbered("slug", _FEW // 4),
        application_id=another("application_id"),
    )
    multiply(
        State,
        _TIMES,
        id=f"{_LATER_ID}::uuid",
        component_id=another("component_id"),
        application_id=another("application_id"),
        current_version_id=another("current_version_id"),
        lineage="md5(lineage || n)",
        created_at=f"created_at + {_LATER}",
        updated_at=f"updated_at + {_LATER}",
    )
    multiply(StateVersion, _TIMES, id=another("id"), state_id=_OF_THE_STATE)
    # The same share as in the demo data: every 500th.
    locked = State.objects.order_by("id").values_list("pk", flat=True)[::500]
    State.objects.filter(pk__in=locked).update(
        lock_id=UUID(int=1), lock_info={"ID": str(UUID(int=1))}, lock_acquired_at=timezone.now()
    )
    # PostgreSQL sorts scattered states instead of reading them in the order of an index. Without
    # CLUSTER, the order of storage depends on the free space that other tests left.
    connection.check_constraints()  # CLUSTER fails if a check is pending
    with connection.cursor() as cursor:
        cursor.execute("CLUSTER states_state USING states_state_pkey")
