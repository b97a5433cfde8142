"""The response to a report."""

from __future__ import annotations

import uuid
from typing import Annotated

from msgspec import Meta, Struct

_Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
_Count = Annotated[int, Meta(ge=0)]


class AppliedReport(Struct):
    """The effect of a report on the stored workloads of its cluster."""

    cluster_id: Annotated[uuid.UUID, Meta(description="The cluster id in the path.")]
    cluster_name: Annotated[str, Meta(description="The cluster's current name.")]
    reported_at: Annotated[_Time, Meta(description="The time in the report, in UTC.")]
    created: Annotated[_Count, Meta(description="Number of new workloads.")]
    updated: Annotated[_Count, Meta(description="Number of changed workloads.")]
    deleted: Annotated[_Count, Meta(description="Number of deleted workloads.")]
    unchanged: Annotated[_Count, Meta(description="Number of unchanged workloads in the report.")]


class ReportAnswer(Struct):
    """The response to an applied report."""

    report: Annotated[AppliedReport, Meta(description="The effect of the report.")]
