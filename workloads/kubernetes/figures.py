"""The figures of a workload: what its pods take and use of a node, each in the unit that is shown.

A new figure is a line here, a column in ``workloads/models/workloads.py`` and a field in
``workloads/reporting/wire.py``; what compares, sums, filters and shows figures follows from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from workloads.kubernetes.quantities import to_bytes, to_millicores

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTS: Final = "requests"
LIMITS: Final = "limits"
USED: Final = "used"


class Figure(NamedTuple):
    """``name`` is its column and its name on the wire, ``resource`` what Kubernetes calls it."""

    name: str
    resource: str
    side: str  # REQUESTS, LIMITS or USED
    shown: Callable[[int], int]  # from nanos


FIGURES: Final = (
    Figure("cpu_requests_millicores", "cpu", REQUESTS, to_millicores),
    Figure("cpu_limits_millicores", "cpu", LIMITS, to_millicores),
    Figure("cpu_used_millicores", "cpu", USED, to_millicores),
    Figure("memory_requests_bytes", "memory", REQUESTS, to_bytes),
    Figure("memory_limits_bytes", "memory", LIMITS, to_bytes),
    Figure("memory_used_bytes", "memory", USED, to_bytes),
    Figure("ephemeral_storage_requests_bytes", "ephemeral-storage", REQUESTS, to_bytes),
)
#: What pods state, and so is always known.
RESERVED: Final = tuple(figure for figure in FIGURES if figure.side != USED)
#: What the metrics API measures, and so may be unknown: null.
MEASURED: Final = tuple(figure for figure in FIGURES if figure.side == USED)
