"""From a ``Report`` to the gzip'd body of a request: what ``incoming`` reads on the other side."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workloads.kubernetes.records import WorkloadRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workloads.reporting.reports import Report

_GZIP: Final = 31  # zlib's window bits for "gzip, and nothing else"
_LEVEL: Final = 1
_ITEM_FIELDS: Final = tuple(n for n in WorkloadRecord.__struct_fields__ if n != "figures")


def gzipped_body(report: Report) -> bytes:
    """Return the body; of its JSON, some megabytes, only an item is held at a time."""
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
    yield from _list("workloads" if report.complete else "upserts", map(_item, report.records))
    if not report.complete:
        yield from _list("deletes", (place._asdict() for place in report.deleted))
    yield b"}"


def _list(name: str, entries: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    yield f',"{name}":['.encode()
    comma = b""
    for entry in entries:
        yield comma + encode(entry)
        comma = b","
    yield b"]"


def _item(record: WorkloadRecord) -> dict[str, Any]:
    item = {name: getattr(record, name) for name in _ITEM_FIELDS}
    item["uid"] = record.uid or None
    return {**item, **record.figures}
