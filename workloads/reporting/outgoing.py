"""Encode a ``Report`` as a gzipped request body, which ``incoming`` parses."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from workloads.kubernetes.facts import MAX_NAME, MAX_NAMESPACE
from workloads.kubernetes.records import WorkloadRecord
from workloads.reporting.wire import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workloads.reporting.reports import Report

log = structlog.get_logger("workloads.collector")

_GZIP: Final = 31  # zlib's window bits for gzip only
_LEVEL: Final = 1
_ITEM: Final = msgspec.json.Decoder(Item)
_ITEM_FIELDS: Final = tuple(n for n in WorkloadRecord.__struct_fields__ if n != "figures")


def gzipped_body(report: Report) -> bytes:
    """Return the body. Only one item of its JSON (up to a few MB) is in memory at a time."""
    packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    packed = [packer.compress(piece) for piece in _pieces(report)]
    packed.append(packer.flush())
    return b"".join(packed)


def _pieces(report: Report) -> Iterator[bytes]:
    head: dict[str, Any] = {
        "reported_at": report.reported_at,
        "cluster_uid": report.cluster_uid or None,
        "report_interval_seconds": report.interval_seconds,
        "collector_version": report.collector_version,
    }
    encode = msgspec.json.Encoder().encode
    yield encode(head)[:-1]
    yield from _list("workloads" if report.complete else "upserts", _items(report.records))
    if not report.complete:
        yield from _list("deletes", (encode(place._asdict()) for place in report.deleted))
    yield b"}"


def _list(name: str, entries: Iterable[bytes]) -> Iterator[bytes]:
    yield f',"{name}":['.encode()
    comma = b""
    for entry in entries:
        yield comma + entry
        comma = b","
    yield b"]"


def _items(records: Iterable[WorkloadRecord]) -> Iterator[bytes]:
    """Yield valid items only, because the service rejects a report with a single invalid item.

    If an API server accepts more than Kubernetes does, omit the uid, labels and containers of an
    invalid workload. Skip a workload with an invalid or duplicate place.
    """
    encode = msgspec.json.Encoder().encode
    places = set()
    for record in records:
        place = (record.kind, record.namespace, record.name)
        item = _item(record)
        encoded = encode(item)
        fault = _fault(encoded)
        if fault is not None:
            log.warning("workload_reported_in_part", **_named(record), error=fault)
            encoded = encode({**item, "uid": None, "labels": {}, "containers": ()})
            fault = _fault(encoded)
        if fault is not None or place in places:
            log.warning("workload_not_reported", **_named(record))
            continue
        places.add(place)
        yield encoded


def _fault(item: bytes) -> str | None:
    """Return the reason why the service would reject an item, or None if it is valid."""
    try:
        _ITEM.decode(item)
    except ValueError as error:
        return str(error)
    return None


def _named(record: WorkloadRecord) -> dict[str, str]:
    return {
        "kind": record.kind.value,
        "namespace": record.namespace[:MAX_NAMESPACE],
        "name": record.name[:MAX_NAME],
    }


def _item(record: WorkloadRecord) -> dict[str, Any]:
    item = {name: getattr(record, name) for name in _ITEM_FIELDS}
    item["uid"] = record.uid or None
    return {**item, **record.figures}
