"""The resource figures of a workload: what its pods request and use, in the units of the API.

A new figure requires a line here, a column in ``workloads/models/workloads.py`` and a field in
``workloads/reporting/wire.py``. Comparisons, sums, filters and responses are derived from these
places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from workloads.kubernetes.quantities import to_bytes, to_millicores

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTS: Final = "requests"
LIMITS: Final = "limits"
USED: Final = "used"
#: Descriptions in the OpenAPI document.
DESCRIPTIONS: Final = {
    REQUESTS: "Requests of the pods that have not terminated, rounded up.",
    LIMITS: "Limits of the pods that have not terminated. A container without a limit adds 0.",
    USED: "Usage of the pods that have not terminated, from the metrics API; null if unknown.",
}


class Figure(NamedTuple):
    """A resource figure. ``name`` is the column and API field; ``resource`` is Kubernetes' name."""

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
#: Figures from pod specs, which are always known.
RESERVED: Final = tuple(figure for figure in FIGURES if figure.side != USED)
#: Figures from the metrics API, which may be unknown (null).
MEASURED: Final = tuple(figure for figure in FIGURES if figure.side == USED)
