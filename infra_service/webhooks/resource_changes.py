"""Events about changed resources of a state, which the audit log records for webhooks.

The events are recorded only while an endpoint subscribes to this type. Otherwise, each push would
add a second event to the audit log.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from apikeys import audit
from apikeys.actors import Actor
from infra_service.change_history.models import UNKNOWN
from infra_service.webhooks.models import WebhookEndpoint
from states.document.resource_changes import ResourceAction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra_service.change_history.models import Change
    from states.models import State, StateVersion

TYPE: Final = "state.resources_changed"
#: Limits of an event: resources, characters of an address, and bytes of the list as JSON.
MOST_RESOURCES: Final = 20
_MOST_OF_ADDRESS: Final = 200
_MOST_BYTES: Final = 8_000
#: The order of the resources in an event.
_IN_ORDER: Final = (
    ResourceAction.REMOVED,
    ResourceAction.REPLACED,
    ResourceAction.TAINTED,
    ResourceAction.CHANGED,
    ResourceAction.MOVED,
    ResourceAction.ADDED,
)


def receive(
    *, state: State, version: StateVersion, changes: Sequence[Change], **_signal: Any
) -> None:
    """Record an event with the number of changes by action, and the first addresses.

    Versions without changes, or with unknown changes, have no event.
    """
    known = [change for change in changes if change.action != UNKNOWN]
    if not known or not WebhookEndpoint.objects.have_type(TYPE):
        return
    audit.authorize_and_record(
        Actor.of_command("index_states"),
        TYPE,
        state.pk,
        version=version.number,
        pushed_by=version.created_by,
        changes=dict(Counter(str(change.action) for change in known)),
        resources=_resources(known),
    )


def _resources(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return the first resources, in the order of actions, that fit into an event."""
    by_action = sorted(changes, key=lambda change: _IN_ORDER.index(ResourceAction(change.action)))
    first = [
        {"action": str(change.action), "address": change.address[:_MOST_OF_ADDRESS]}
        for change in by_action[:MOST_RESOURCES]
    ]
    sizes = itertools.accumulate(len(json.dumps(resource)) for resource in first)
    return [resource for resource, size in zip(first, sizes, strict=True) if size <= _MOST_BYTES]
