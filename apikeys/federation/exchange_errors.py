"""Refusals of an exchange. The reason is for the audit log and the log, not for the caller."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import APIException, ErrorDetail


class ExchangeRefused(APIException):
    """``error`` and ``default_detail`` are for the caller, the rest for the audit log."""

    meaning = (
        "The platform's token is not trusted. The audit log has the reason. The response has "
        "OAuth's format."
    )
    status_code = 400
    default_code = "INVALID_GRANT"
    default_detail = "The token was refused. The audit log has the reason."
    error = "invalid_grant"

    def __init__(self, reason: str, because: str, **details: Any) -> None:
        super().__init__()
        self.reason, self.because, self.details = reason, because, details


class AssertionRefused(ExchangeRefused):
    """The request does not prove a trusted sender."""


class NarrowingRefused(ExchangeRefused):
    """A trusted sender requests more than the policy's grant; the response states this."""

    def __init__(self, error: str, because: str) -> None:
        super().__init__(error, because)
        self.error, self.detail = error, ErrorDetail(because, error)


class IssuerBusy(APIException):
    meaning = "Too many requests wait for the keys of a slow issuer."
    status_code = 503
    default_code = "ISSUER_BUSY"
    default_detail = "The issuer's keys are being fetched; send the request again."
    wait = 1
