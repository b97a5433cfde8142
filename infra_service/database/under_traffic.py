from infra_service.lib.database.under_traffic import (
    AddConstraintUnderTraffic,
    AddIndexUnderTraffic,
    AddUniqueUnderTraffic,
    RemoveConstraintUnderTraffic,
    RemoveIndexUnderTraffic,
)

__all__ = [
    "AddConstraintUnderTraffic",
    "AddIndexUnderTraffic",
    "AddUniqueUnderTraffic",
    "RemoveConstraintUnderTraffic",
    "RemoveIndexUnderTraffic",
]
