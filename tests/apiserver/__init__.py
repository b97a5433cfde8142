"""An API server of Kubernetes that plays recordings, on loopback and in a thread of its own.

It answers as the recorded one did, and refuses what real ones refuse: `negotiation` has their rules
for `Accept` and for parameters. Tests queue faults and events on it.
"""

from tests.apiserver.recording import (
    DAEMONSETS,
    DEAD_METRICS,
    DEPLOYMENTS,
    EXPIRED,
    FORBIDDEN,
    KUBE_SYSTEM,
    LISTS,
    METRICS,
    NO_METRICS,
    PODS,
    REPLICASETS,
    SERVER_VERSION,
    STATEFULSETS,
    TOKEN,
    UNAUTHORIZED,
    UNAVAILABLE,
    VERSION,
    Fault,
    event,
    lines,
    recorded,
    recorded_lists,
)
from tests.apiserver.server import ReplayServer

__all__ = [
    "DAEMONSETS",
    "DEAD_METRICS",
    "DEPLOYMENTS",
    "EXPIRED",
    "FORBIDDEN",
    "KUBE_SYSTEM",
    "LISTS",
    "METRICS",
    "NO_METRICS",
    "PODS",
    "REPLICASETS",
    "SERVER_VERSION",
    "STATEFULSETS",
    "TOKEN",
    "UNAUTHORIZED",
    "UNAVAILABLE",
    "VERSION",
    "Fault",
    "ReplayServer",
    "event",
    "lines",
    "recorded",
    "recorded_lists",
]
