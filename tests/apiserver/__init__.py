"""A Kubernetes API server that replays recordings, in a thread of its own on loopback.

It answers like the recorded server and rejects the requests that real servers reject; `negotiation`
has the rules for `Accept` and for parameters. Tests queue faults and events on it.
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
