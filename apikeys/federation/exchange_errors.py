"""Refusals of a token exchange. The audit log contains reasons that the response omits."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import APIException, ErrorDetail


class ExchangeRefused(APIException):
    """A refused exchange. The response contains ``error`` and the detail, but not ``because``."""

    meaning = (
        "The service does not trust the platform's token. The audit log contains the reason. The "
        "response uses the OAuth error format."
    )
    status_code = 400
    default_code = "INVALID_GRANT"
    default_detail = "The token was refused. The audit log contains the reason."
    error = "invalid_grant"

    def __init__(self, reason: str, because: str, **details: Any) -> None:
        super().__init__()
        self.reason, self.because, self.details = reason, because, details


class AssertionRefused(ExchangeRefused):
    """A request that does not prove a trusted sender."""


class NarrowingRefused(ExchangeRefused):
    """A refusal with its cause in the response, such as a request beyond the policy's grant."""

    def __init__(self, error: str, because: str) -> None:
        super().__init__(error, because)
        self.error, self.detail = error, ErrorDetail(because, error)


class IssuerBusy(APIException):
    meaning = "Too many requests are waiting for the keys of a slow issuer."
    status_code = 503
    default_code = "ISSUER_BUSY"
    default_detail = "The service is fetching the issuer's keys. Send the request again."
    wait = 1
