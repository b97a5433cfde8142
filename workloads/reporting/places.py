from typing import NamedTuple


class Place(NamedTuple):
    """What tells a workload from the others of its cluster."""

    namespace: str
    name: str
    kind: str
