"""Parse the body of a report into a ``Report``, or list its faults."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from workloads.reporting.errors import InvalidJson, InvalidReport
from workloads.reporting.items import record_of
from workloads.reporting.reports import Place, Report
from workloads.reporting.wire import Delta, Item, PlaceForm, Snapshot
from workloads.reporting.wire_types import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Raw

#: An earlier time means a clock that was never set: Kubernetes was first released in 2014.
_EARLIEST: Final = dt.datetime(2014, 1, 1, tzinfo=dt.UTC)
#: A later time is impossible. A separate check compares the time with the database's clock.
_LATEST: Final = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
#: The maximum number of faults in an error response.
MAX_FAULTS: Final = 100

T = TypeVar("T", bound=PlaceForm)

_SNAPSHOT: Final = msgspec.json.Decoder(Snapshot)
_DELTA: Final = msgspec.json.Decoder(Delta)
_ITEM: Final = msgspec.json.Decoder(Item)
_PLACE: Final = msgspec.json.Decoder(PlaceForm)

# msgspec's messages consist of a sentence and the path of the value.
_WHERE: Final = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")
_NAMED: Final = re.compile(r"(?:required|unknown) field `([^`]*)`")
_REASONS: Final = (
    ("Object missing required field", "REQUIRED"),
    ("Object contains unknown field", "UNKNOWN_FIELD"),
    ("Invalid enum value", "UNKNOWN_VALUE"),
    (" of length ", "OUT_OF_RANGE"),
    (" >= ", "OUT_OF_RANGE"),
    (" <= ", "OUT_OF_RANGE"),
    ("out of range", "OUT_OF_RANGE"),
    ("matching regex", "INVALID_FORMAT"),
    ("RFC3339", "INVALID_FORMAT"),
    ("timezone", "INVALID_FORMAT"),
)
_PATTERN: Final = re.compile(r"matching regex (.*)$")
_PATTERN_WORDS: Final = {repr(pattern): f"The text {words}" for pattern, words in PATTERNS.items()}
_WORDS: Final = 300


class _TooManyFaultsError(Exception):
    """The report has more faults than the limit."""


class _Faults:
    """The faults of a report, up to the limit."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []

    def add(self, field: str, description: str, reason: str) -> None:
        if len(self.found) == MAX_FAULTS:
            raise _TooManyFaultsError
        self.found.append({"field": field, "description": description, "reason": reason})

    def add_error(self, prefix: str, error: Exception) -> None:
        """Add an error of msgspec, with the path of the item."""
        sentence = str(error)
        where = _WHERE.search(sentence)
        path = re.sub(r"\[(\d+)\]", r".\1", where[1]).replace("[...]", "") if where else ""
        named = _NAMED.search(sentence)
        parts = (prefix, path.strip("."), named[1] if named else "")
        reason = next((reason for text, reason in _REASONS if text in sentence), "INVALID")
        description = sentence[: where.start()] if where else sentence
        if pattern := _PATTERN.search(description):
            description = _PATTERN_WORDS.get(pattern[1], description)
        self.add(
            ".".join(filter(None, parts))[:_WORDS] or "body", f"{description[:_WORDS]}.", reason
        )


def read_report(body: bytes | bytearray, *, complete: bool) -> Report:
    """Parse a snapshot (`complete`) or a delta.

    Raises:
        InvalidJson: the body is not JSON.
        InvalidReport: the report has faults. The error contains each fault, with the index of its
        item, up to ``MAX_FAULTS``.
    """
    head = _read_head(body, complete=complete)
    faults = _Faults()
    more = False
    try:
        _check_moment(head.reported_at, faults)
        report = _build(head, faults)
    except _TooManyFaultsError:
        more = True
    if faults.found:
        raise InvalidReport(faults.found, more=more)
    return report


def _read_head(body: bytes | bytearray, *, complete: bool) -> Snapshot | Delta:
    faults = _Faults()
    try:
        return _SNAPSHOT.decode(body) if complete else _DELTA.decode(body)
    except msgspec.ValidationError as error:
        faults.add_error("", error)
        raise InvalidReport(faults.found) from error
    except RecursionError as error:
        raise InvalidJson("The JSON is nested too deeply.") from error
    except ValueError as error:  # msgspec's error, or Python's for bytes that are not UTF-8
        raise InvalidJson(f"The body is not JSON: {error}") from error


def _check_moment(reported_at: dt.datetime, faults: _Faults) -> None:
    if reported_at > _LATEST:
        faults.add(
            "reported_at", "Is centuries in the future. Check the reporter's clock.", "OUT_OF_RANGE"
        )
    elif reported_at < _EARLIEST:
        faults.add(
            "reported_at",
            "Is earlier than the first release of Kubernetes. Check the reporter's clock.",
            "OUT_OF_RANGE",
        )


def _build(head: Snapshot | Delta, faults: _Faults) -> Report:
    seen: dict[Place, str] = {}
    if isinstance(head, Snapshot):
        items, deletes, name = head.workloads, [], "workloads"
    else:
        items, deletes, name = head.upserts, head.deletes, "upserts"
    records = []
    for field, item in _each(_ITEM, items, name, faults):
        if _is_first(field, item, seen, faults) and _is_consistent(field, item, faults):
            records.append(record_of(item, head.reported_at))
    deleted = [
        _place(place)
        for field, place in _each(_PLACE, deletes, "deletes", faults)
        if _is_first(field, place, seen, faults)
    ]
    return Report(
        reported_at=head.reported_at,
        complete=isinstance(head, Snapshot),
        records=records,
        deleted=frozenset(deleted),
        cluster_uid=head.cluster_uid or "",
        interval_seconds=head.report_interval_seconds,
        collector_version=head.collector_version,
    )


def _each(
    decoder: msgspec.json.Decoder[T], items: Sequence[Raw], name: str, faults: _Faults
) -> Iterator[tuple[str, T]]:
    for index, raw in enumerate(items):
        field = f"{name}.{index}"
        try:
            yield field, decoder.decode(raw)
        except ValueError as error:
            faults.add_error(field, error)


def _is_first(field: str, form: PlaceForm, seen: dict[Place, str], faults: _Faults) -> bool:
    first = seen.setdefault(_place(form), field)
    if first != field:
        faults.add(field, f"Is the same workload as {first}.", "DUPLICATE")
    return first == field


def _is_consistent(field: str, item: Item, faults: _Faults) -> bool:
    if item.health_status is None and item.status_reason:
        faults.add(f"{field}.status_reason", "Requires a health_status.", "INVALID")
    elif item.health_status is not None and item.pods is not None:
        faults.add(f"{field}.pods", "Specify pods or a health_status, but not both.", "INVALID")
    elif item.pods is not None and item.replicas_desired is None:
        faults.add(f"{field}.replicas_desired", "Required with pods.", "REQUIRED")
    else:
        return True
    return False


def _place(form: PlaceForm) -> Place:
    return Place(form.namespace, form.name, form.kind.value)
