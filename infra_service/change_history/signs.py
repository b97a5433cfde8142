"""Actions and details of changes as text for the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra_service.change_history.models import ACTIONS, UNKNOWN
from infra_service.lib.admin.badges import badge

if TYPE_CHECKING:
    from infra_service.change_history.models import Change

_SIGNS: Final = {
    "ADDED": "ok", "REMOVED": "error", "REPLACED": "warning", "TAINTED": "warning",
    "HEALTH_CHANGED": "warning", UNKNOWN: "warning",
}  # fmt: skip
WORDS: Final = {action: action.replace("_", " ").capitalize() for action in ACTIONS}


def sign(action: str) -> str:
    return _SIGNS.get(action, "idle")


def mark(action: str) -> str:
    """Return the action as a badge."""
    return badge(sign(action), WORDS[action])


def details(change: Change) -> str:
    """Return the changed attributes, the former address, or the values of a workload."""
    if change.previous_address:
        return f"from {change.previous_address}"
    values = " → ".join(filter(None, (change.before, change.after)))
    parts = [values] if values else [", ".join(change.attributes)]
    return ": ".join(filter(None, (*parts, change.problem)))
