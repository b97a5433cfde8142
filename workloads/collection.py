"""The report interval of a cluster, the status of its collection, and collection failures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: The default report interval of a cluster, in seconds.
DEFAULT_REPORT_INTERVAL: Final = 60
MAX_REPORT_INTERVAL: Final = 24 * 60 * 60
#: The number of consecutive missed reports after which a cluster counts as silent.
MISSED_REPORTS: Final = 3
MAX_MESSAGE: Final = 500
MAX_RESOURCE: Final = 100
MAX_COLLECTOR_VERSION: Final = 64

# A message may quote secrets: a token of this service, a JSON web token, credentials in a URL.
_SECRET: Final = re.compile(
    r"\bis[kps]_[0-9A-Za-z]+"
    r"|\beyJ[\w-]+(\.[\w-]*)*"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic ))\S+"
)


class CollectionStatus(StrEnum):
    """The collection status of a cluster, as sent over HTTP."""

    PENDING = "PENDING"
    OK = "OK"
    FAILING = "FAILING"
    SILENT = "SILENT"


class FailureReason(StrEnum):
    """The reason for a collection failure, as sent over HTTP."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    UNREACHABLE = "UNREACHABLE"
    UNAVAILABLE = "UNAVAILABLE"
    INVALID_ANSWER = "INVALID_ANSWER"
    WATCH_LOST = "WATCH_LOST"
    REPORT_REFUSED = "REPORT_REFUSED"
    OTHER = "OTHER"


#: The choices of serializer fields.
COLLECTION_STATUSES = [(status.value, status.value) for status in CollectionStatus]
FAILURE_REASONS = [(reason.value, reason.value) for reason in FailureReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFailure:
    """A failed collection. ``resource`` is the requested resource, such as ``pods``."""

    reason: FailureReason
    message: str
    resource: str = ""
    collector_version: str = ""


def safe_text(text: str, limit: int) -> str:
    """Return the text as one line of at most ``limit`` characters, without credentials or NUL."""
    plain = " ".join(_SECRET.sub("[secret]", text).replace("\0", "").split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
