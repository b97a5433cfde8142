"""Whether the reports of a cluster come, and why not: a collector's own word and the clock's."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, Value

if TYPE_CHECKING:
    from django.db.models import Expression

    from workloads.models import Cluster

#: A reporter that has missed so many reports in a row is gone.
MISSED_REPORTS: Final = 3
MAX_MESSAGE: Final = 500
MAX_RESOURCE: Final = 100

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


def collection_status(cluster: Cluster, now: dt.datetime) -> CollectionStatus:
    """Judge the collection of a cluster at `now`, by the database's clock."""
    heard = heard_at(cluster)
    if heard is None:
        return CollectionStatus.PENDING
    if now - heard > dt.timedelta(seconds=MISSED_REPORTS * cluster.report_interval_seconds):
        return CollectionStatus.SILENT
    return CollectionStatus.OK if failing_since(cluster) is None else CollectionStatus.FAILING


def heard_at(cluster: Cluster) -> dt.datetime | None:
    """Return when its collector was last heard of, with a report or with a failure."""
    heard = (cluster.last_received_at, cluster.collection_error_at)
    return max((moment for moment in heard if moment is not None), default=None)


def failing_since(cluster: Cluster) -> dt.datetime | None:
    """Return since when only failures were heard, None if the last that was heard is none."""
    failed, received = cluster.collection_error_at, cluster.last_received_at
    if failed is None or (received is not None and received >= failed):
        return None
    return cluster.collection_failing_since


def lag(cluster: Cluster, now: dt.datetime) -> dt.timedelta | None:
    """Return how long ago the reporter looked at what is shown; None before the first report."""
    if cluster.last_report_at is None or cluster.last_received_at is None:
        return None
    # The reporter's clock may be ahead, and what it saw is not newer than its arrival.
    return now - min(cluster.last_report_at, cluster.last_received_at)


def heard_within_patience(moment: str, now: Expression) -> Q:
    """Return the condition that the column `moment` is no longer ago than three intervals."""
    patience = F("report_interval_seconds") * Value(dt.timedelta(seconds=MISSED_REPORTS))
    since = now - ExpressionWrapper(patience, DurationField())
    return Q(**{f"{moment}__gte": ExpressionWrapper(since, DateTimeField())})


def is_silent(now: Expression) -> Q:
    """Return the condition for the clusters that send no reports, whatever the reason.

    Three in a row did not come, not even a first one; or its collector cannot read it.
    """
    heard = heard_within_patience("last_received_at", now)
    is_new = Q(last_received_at=None) & heard_within_patience("created_at", now)
    failed = Q(collection_error_at__isnull=False)
    never, before = Q(last_received_at=None), Q(last_received_at__lt=F("collection_error_at"))
    return (~heard & ~is_new) | (failed & (never | before))


def safe_text(text: str, limit: int) -> str:
    """Return the text for people: without what looks like a credential, NUL or further lines."""
    plain = " ".join(_SECRET.sub("[secret]", text).replace("\0", "").split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
