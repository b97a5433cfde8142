"""Prometheus metrics of authentications, which the log also names, and of expiring credentials."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from apikeys.models import AccessToken, ApiKey
from apikeys.querysets import SOON

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The maximum number of expiring keys, and of expiring tokens, that a scrape counts.
MOST_EXPIRING: Final = 10_000


class Authentication(StrEnum):
    """The outcome of an authentication. Responses contain less detail."""

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


class CredentialCollector(Collector):
    """The number of active keys and issued tokens that expire within 30 days, by bounded counts."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the numbers by kind."""
        expiring = GaugeMetricFamily(
            "infra_credentials_expiring",
            f"Active API keys and issued tokens that expire within {SOON.days} days.",
            labels=["kind"],
        )
        for kind, model in (("api_key", ApiKey), ("access_token", AccessToken)):
            found = model.objects.issued().expiring().order_by()[:MOST_EXPIRING]
            expiring.add_metric([kind], found.count())
        yield expiring
