"""How often a cluster is reported, whether the reports come, and what kept a collector from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Seconds that a cluster is expected to be silent between two reports, unless it says otherwise.
DEFAULT_REPORT_INTERVAL: Final = 60
MAX_REPORT_INTERVAL: Final = 24 * 60 * 60
#: A reporter that has missed so many reports in a row is gone.
MISSED_REPORTS: Final = 3
MAX_MESSAGE: Final = 500
MAX_RESOURCE: Final = 100
MAX_COLLECTOR_VERSION: Final = 64

# A message may quote what was sent: a token of ours, a JSON web token, credentials in an address.
_SECRET: Final = re.compile(
    r"\bis[kps]_[0-9A-Za-z]+"
    r"|\beyJ[\w-]+(\.[\w-]*)*"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic ))\S+"
)


class CollectionStatus(StrEnum):
    """The wire values."""

    PENDING = "PENDING"
    OK = "OK"
    FAILING = "FAILING"
    SILENT = "SILENT"


class FailureReason(StrEnum):
    """Why a collector cannot read its cluster; the wire values."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    UNREACHABLE = "UNREACHABLE"
    UNAVAILABLE = "UNAVAILABLE"
    INVALID_ANSWER = "INVALID_ANSWER"
    WATCH_LOST = "WATCH_LOST"
    REPORT_REFUSED = "REPORT_REFUSED"
    OTHER = "OTHER"


#: For serializers' fields.
COLLECTION_STATUSES = [(status.value, status.value) for status in CollectionStatus]
FAILURE_REASONS = [(reason.value, reason.value) for reason in FailureReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFailure:
    """What kept a collector from reporting. `resource` is what it asked for, such as ``pods``."""

    reason: FailureReason
    message: str
    resource: str = ""
    collector_version: str = ""


def safe_text(text: str, limit: int) -> str:
    """Return the text for people: without what looks like a credential, NUL or further lines."""
    plain = " ".join(_SECRET.sub("[secret]", text).replace("\0", "").split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
