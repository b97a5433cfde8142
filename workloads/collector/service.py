"""A destination that sends reports to the service's HTTP API."""

from __future__ import annotations

import dataclasses
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workloads.collection import MAX_MESSAGE, MAX_RESOURCE, FailureReason, safe_text
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.reporting.outgoing import gzipped_body
from workloads.reporting.reports import Applied

if TYPE_CHECKING:
    import uuid

    from workloads.collection import CollectionFailure
    from workloads.collector.service_connection import Answer, ServiceConnection
    from workloads.collector.service_credentials import Credentials
    from workloads.reporting.reports import Report

#: Error reasons of the service (never of a proxy) after which no report can succeed.
_FINAL: Final = {"CLUSTER_NOT_FOUND", "CLUSTER_UID_MISMATCH"}
_JSON: Final = {"Content-Type": "application/json"}


class _Response(msgspec.Struct):
    report: Applied


class ServiceDestination:
    """A destination at the HTTP API. After a refused or lost report, a snapshot must follow."""

    def __init__(
        self,
        connection: ServiceConnection,
        credentials: Credentials,
        cluster_id: uuid.UUID,
        version: str,
    ) -> None:
        self._connection, self._credentials = connection, credentials
        self._path = f"/api/v1/clusters/{cluster_id}/workloads"
        self._version = version

    def apply(self, report: Report) -> Applied:
        body = gzipped_body(dataclasses.replace(report, collector_version=self._version))
        answer = self._send(
            "PUT" if report.complete else "PATCH",
            self._path,
            body,
            {**_JSON, "Content-Encoding": "gzip"},
        )
        try:
            return msgspec.json.decode(answer.body, type=_Response).report
        except (ValueError, RecursionError) as error:
            raise NotReportedError(
                "the response is not from the service; check the address"
            ) from error

    def publish(self, failure: CollectionFailure) -> None:
        details: dict[str, Any] = {
            "reason": failure.reason.value,
            "resource": safe_text(failure.resource, MAX_RESOURCE),
            "message": safe_text(failure.message, MAX_MESSAGE),
            "collector_version": self._version,
        }
        self._send("POST", f"{self._path}:report-failure", msgspec.json.encode(details), _JSON)

    def stop(self) -> None:
        """Abort a report in progress. The service applies a report completely or not at all."""
        self._connection.stop()

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        token = self._credentials.token()
        sent = {**headers, "Authorization": f"Bearer {token}"}
        answer = self._connection.send(method, path, body, sent)
        if answer.status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            return answer
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._credentials.refused(token)
        if answer.reason in _FINAL:
            raise ReportingEndedError(str(answer))
        is_absent = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        reason = FailureReason.OTHER if is_absent else FailureReason.REPORT_REFUSED
        raise NotReportedError(str(answer), reason, answer.retry_after)
