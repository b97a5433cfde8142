"""Housekeeping: remove expired data in parts, each by a single process at a time."""

from infra_service.operations.housekeeping.parts import PARTS
from infra_service.operations.housekeeping.running import Outcome, run_part

__all__ = ["PARTS", "Outcome", "run_part"]
