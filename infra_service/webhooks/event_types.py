"""The event types of webhooks: actions of the audit log, and their delivered details.

A type has the name of its action. Exceptions are ``audit.event`` and the types in
``scheduled_events.py`` and ``health_changes.py``. Each delivered detail is listed, because the
audit log contains more than an endpoint may receive, such as the token that acquired a lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apikeys.scopes import Scope

#: Sent by ``:test``. Endpoints cannot subscribe to this type.
TEST: Final = "webhook.test"
#: Every event of the audit log, with all details. The only type in the format ``ocsf``.
AUDIT: Final = "audit.event"


@dataclass(frozen=True, slots=True)
class EventType:
    """An event type: the scope that an endpoint needs for it, and the delivered details."""

    scope: Scope
    description: str
    details: tuple[str, ...] = ()


_PUSHED: Final = ("version", "serial", "md5", "size_bytes")

TYPES: Final[dict[str, EventType]] = {
    "state.create": EventType(Scope.STATE_READ, "A state was registered"),
    "state.push": EventType(
        Scope.STATE_READ, "A version of a state was pushed", (*_PUSHED, "force")
    ),
    "state.import": EventType(
        Scope.STATE_READ, "A version was imported from another backend", _PUSHED
    ),
    "state.restore": EventType(
        Scope.STATE_READ,
        "An old version was made current",
        (*_PUSHED, "restored", "reason"),
    ),
    "state.lock": EventType(Scope.STATE_READ, "A state was locked", ("lock",)),
    "state.unlock": EventType(Scope.STATE_READ, "A state was unlocked", ("lock",)),
    "state.force_unlock": EventType(
        Scope.STATE_READ, "A lock was force-unlocked", ("lock", "reason")
    ),
    "state.frozen": EventType(
        Scope.STATE_READ, "A state was frozen", ("version", "reason", "expected_until")
    ),
    "state.unfrozen": EventType(Scope.STATE_READ, "A state was unfrozen", ("version", "reason")),
    "state.delete": EventType(Scope.STATE_READ, "A state was deleted", ("version", "reason")),
    "state.undelete": EventType(Scope.STATE_READ, "A deleted state was restored", ("version",)),
    "state.lock_held": EventType(Scope.STATE_READ, "A lock is held for longer than the limit"),
    "state.token_found": EventType(
        Scope.STATE_READ, "A state contains an active key or token", ("version", "address")
    ),
    "state.check_failed": EventType(
        Scope.STATE_READ, "A check of a state started to fail", ("version", "checks")
    ),
    "state.resources_changed": EventType(
        Scope.STATE_READ,
        "Resources of a state changed",
        ("version", "pushed_by", "changes", "resources"),
    ),
    "cluster.create": EventType(Scope.CLUSTER_READ, "A cluster was registered", ("name",)),
    "cluster.update": EventType(Scope.CLUSTER_READ, "A cluster was renamed or changed", ("name",)),
    "cluster.delete": EventType(Scope.CLUSTER_READ, "A cluster was deleted", ("name", "workloads")),
    "cluster.unreachable": EventType(Scope.CLUSTER_READ, "A cluster stopped reporting"),
    "workload.health_changed": EventType(Scope.CLUSTER_READ, "The health of workloads changed"),
    "api_key.create": EventType(
        Scope.APIKEY_READ, "A key of the webhook's owner was created", ("name", "expires_at")
    ),
    "api_key.rotate": EventType(
        Scope.APIKEY_READ,
        "A key of the webhook's owner was rotated",
        ("grace_period_seconds",),
    ),
    "api_key.revoke": EventType(Scope.APIKEY_READ, "A key of the webhook's owner was revoked"),
    "api_key.expiring": EventType(Scope.APIKEY_READ, "A key of the webhook's owner expires soon"),
    AUDIT: EventType(Scope.AUDIT_READ, "An event of the audit log was recorded"),
}


#: The choices of a serializer field.
NAMES: Final = [(name, of.description) for name, of in TYPES.items()]


def scopes_of(types: list[str]) -> set[str]:
    """Return the scopes that an endpoint needs to receive these types."""
    return {TYPES[name].scope.value for name in types}
