"""System checks of the settings for reports."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, register

from infra_service.lib.api import memory
from workloads.reporting import bodies


@register("settings")
def the_largest_report_fits_in_memory(**_kwargs: Any) -> list[CheckMessage]:
    """Check that the memory budget admits the largest report."""
    return memory.shortfall("WORKLOADS_MAX_BYTES", bodies.FACTOR, check_id="workloads.E001")
