"""Outcomes of authentications for Prometheus and the log; clients get less detail."""

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
    # Another scheme, or not in a token's form.
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
# Looking up labels is half of a counter's cost. Each outcome also exists from the start, at 0.
_RESULTS: Final = {result: AUTHENTICATIONS.labels(result.value) for result in Authentication}


def count(result: Authentication) -> None:
    """Count an authentication; add a failed outcome to the request's log lines."""
    _RESULTS[result].inc()
    if result is not Authentication.OK:
        structlog.contextvars.bind_contextvars(authentication=result.value)
