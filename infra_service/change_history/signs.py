"""Actions and details of changes as text for the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra_service.change_history.models import ACTIONS, UNKNOWN
from infra_service.lib.admin.badges import badge
from workloads.reporting.deployments import DeploymentAction
from workloads.signs import word

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


def shown(change: Change, value: str) -> str:
    """Return the value before or after a change. A health becomes its label."""
    return word(value) if change.action == DeploymentAction.HEALTH_CHANGED else value


def details(change: Change) -> str:
    """Return the changed attributes, the former address, or the values of a workload."""
    if change.previous_address:
        return f"from {change.previous_address}"
    values = " → ".join(shown(change, one) for one in (change.before, change.after) if one)
    parts = [values] if values else [", ".join(change.attributes)]
    return ": ".join(filter(None, (*parts, change.problem)))
