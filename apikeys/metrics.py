"""What became of authentications, for Prometheus and for the log; the client is told less."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import structlog
from prometheus_client import Counter


class Authentication(StrEnum):
    """How an authentication ended."""

    OK = "ok"
    # No credentials on a path that needs them.
    MISSING = "missing"
    # Another scheme, or not of a token's form.
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    # The token, or the key that it was minted from.
    REVOKED = "revoked"
    # Its owner's account is closed.
    INACTIVE = "inactive"
    # Its owner has not signed on for OWNER_IDLE_DAYS.
    IDLE = "idle"
    EXPIRED = "expired"
    # The client's address is not in the networks of the token, or of its key.
    ADDRESS = "address"


AUTHENTICATIONS: Final = Counter(
    "infra_authentications", "Requests by how their authentication ended.", ["result"]
)
# Looked up once: half of a counter's cost. And each of them is there, at 0, from the start.
_RESULTS: Final = {result: AUTHENTICATIONS.labels(result.value) for result in Authentication}


def count(result: Authentication) -> None:
    """Count one authentication; the request's log lines name what is not ok."""
    _RESULTS[result].inc()
    if result is not Authentication.OK:
        structlog.contextvars.bind_contextvars(authentication=result.value)
