"""What grows and need not be kept goes, in parts; each is done by one process at a time."""

from infra_service.housekeeping.parts import PARTS
from infra_service.housekeeping.running import Outcome, run_part

__all__ = ["PARTS", "Outcome", "run_part"]
