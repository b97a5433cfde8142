"""Errors that reject a report. The service does not store any part of a rejected report."""

from __future__ import annotations

import datetime as dt
from http import HTTPStatus
from typing import Any

from rest_framework.exceptions import APIException, NotFound


class StaleReport(APIException):
    meaning = (
        "The report is late, out of order or a duplicate: it is not newer than the last report."
    )
    status_code = HTTPStatus.CONFLICT
    default_code = "STALE_REPORT"

    def __init__(self, reported_at: dt.datetime, last_report_at: dt.datetime) -> None:
        super().__init__(
            f"The service has already received a report dated {shown(last_report_at)}. This "
            f"report, dated {shown(reported_at)}, is not newer."
        )
        self.metadata = {
            "reported_at": shown(reported_at),
            "last_report_at": shown(last_report_at),
        }


class ClockAhead(APIException):
    meaning = "The report is dated in the future, and would block correct reports until that time."
    status_code = HTTPStatus.BAD_REQUEST
    default_code = "CLOCK_AHEAD"

    def __init__(self, reported_at: dt.datetime, database_time: dt.datetime) -> None:
        super().__init__(
            f"The report is dated {shown(reported_at)}, but the service's time is "
            f"{shown(database_time)}. Correct the reporter's clock."
        )
        self.metadata = {
            "reported_at": shown(reported_at),
            "database_time": shown(database_time),
        }


class ClusterBusy(APIException):
    meaning = (
        "Other reports of the cluster are in progress, and waiting took too long, or too many "
        "requests wait."
    )
    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_code = "CLUSTER_BUSY"
    default_detail = (
        "Other reports of this cluster are being applied. Send this report again later."
    )
    wait = 2


class TooManyReports(APIException):
    meaning = "The maximum number of concurrent reports is reached."
    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_code = "TOO_MANY_REPORTS"
    default_detail = "Reports of other clusters are being applied. Send this report again later."
    wait = 2


class ClusterUidMismatch(APIException):
    meaning = (
        "The uid of the Kubernetes cluster differs from the uid in earlier reports: the reporter "
        "reads a different cluster."
    )
    status_code = HTTPStatus.CONFLICT
    default_code = "CLUSTER_UID_MISMATCH"
    rpc_status = "FAILED_PRECONDITION"

    def __init__(self, reported: str, expected: str) -> None:
        super().__init__(
            f"This cluster has the uid {expected}, but the report is from {reported}. "
            "Check that the token or the kubeconfig belongs to this cluster. If another Kubernetes "
            "cluster replaces it, register a new cluster."
        )
        self.metadata = {"cluster_uid": reported, "expected_cluster_uid": expected}


class WorkloadNotFound(NotFound):
    meaning = "The cluster has no workload with this id."
    default_code = "WORKLOAD_NOT_FOUND"
    default_detail = "The cluster has no workload with this id."
    advice = "GET /api/v1/clusters/{id}/workloads lists the cluster's workloads with their ids."


class InvalidReport(APIException):
    meaning = "The report is invalid. The error lists the faults, up to a limit."
    status_code = HTTPStatus.BAD_REQUEST
    default_code = "INVALID_FIELDS"

    def __init__(self, violations: list[dict[str, str]], *, more: bool = False) -> None:
        """Store the faults. ``more`` means that the report has more faults than the limit."""
        first = f"{violations[0]['field']}: {violations[0]['description']}"
        count = f"{'more than ' if more else ''}{len(violations)}"
        super().__init__(
            "The report was rejected, and nothing was stored. "
            f"The first of {count} fault{'s' if len(violations) > 1 else ''}: {first}"
        )
        self.field_violations: list[dict[str, Any]] = violations


class InvalidJson(APIException):
    meaning = "The body is not JSON."
    status_code = HTTPStatus.BAD_REQUEST
    default_code = "INVALID_JSON"


class InvalidGzip(APIException):
    meaning = "The Content-Encoding is gzip, but the body is not valid gzip or is truncated."
    status_code = HTTPStatus.BAD_REQUEST
    default_code = "INVALID_GZIP"
    default_detail = "The body is not valid gzip, is truncated, or has too many members."


class ContentEncodingUnsupported(APIException):
    meaning = "The Content-Encoding is not supported."
    status_code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    default_code = "CONTENT_ENCODING_UNSUPPORTED"
    default_detail = "Content-Encoding must be gzip or identity."


def shown(moment: dt.datetime) -> str:
    """Return a timezone-aware time in the format of the API."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
