"""Authentication outcomes for Prometheus and the log. Responses contain less detail."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import structlog
from prometheus_client import Counter


class Authentication(StrEnum):
    """The outcome of an authentication."""

    OK = "ok"
    # Missing credentials on a path that requires them.
    MISSING = "missing"
    # An unsupported scheme, or text that is not in the format of a token.
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    # The token, or its key, was revoked.
    REVOKED = "revoked"
    # The owner's account is inactive.
    INACTIVE = "inactive"
    # The owner has not signed on for OWNER_IDLE_DAYS.
    IDLE = "idle"
    EXPIRED = "expired"
    # The client's address is outside the networks of the token or its key.
    ADDRESS = "address"


AUTHENTICATIONS: Final = Counter(
    "infra_authentications", "Requests by authentication result.", ["result"]
)
# Looking up the labels in advance halves the cost of a count. It also exports each outcome at 0.
_RESULTS: Final = {result: AUTHENTICATIONS.labels(result.value) for result in Authentication}


def count(result: Authentication) -> None:
    """Count an authentication, and add a failed outcome to the request's log lines."""
    _RESULTS[result].inc()
    if result is not Authentication.OK:
        structlog.contextvars.bind_contextvars(authentication=result.value)
