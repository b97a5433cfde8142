"""Typed reading of raw JSON objects.

The API server leaves empty fields out and writes null for some, and a custom controller can write
anything into a status: what is missing, null or of another type reads as empty, so that one odd
object never costs the report of a whole cluster.
"""

import sys
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from workloads.kubernetes.quantities import InvalidQuantityError, parse_quantity

JsonObject: TypeAlias = Mapping[str, object]

INT32_MAX: Final = 2**31 - 1
# A status can hold any text; a reason is a code. A longer text is cut to fit its column.
_REASON_LENGTH: Final = 128


def child(parent: JsonObject, key: str) -> JsonObject:
    """Read an object; {} when there is none."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def children(parent: JsonObject, key: str) -> list[JsonObject]:
    """Read the objects of a list; [] when there is none."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(parent: JsonObject, key: str) -> str:
    """Read a string; "" when there is none.

    Kubernetes lets NUL through in an image's name, and PostgreSQL refuses it: without the
    replacement, one such pod would keep the whole cluster from being reported.
    """
    value = parent.get(key)
    return without_nul(value) if isinstance(value, str) else ""


def without_nul(value: str) -> str:
    """Return a text that every database takes."""
    return value.replace("\0", "\ufffd")


def integer(parent: JsonObject, key: str) -> int | None:
    """Read a whole number; None when there is none."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(parent: JsonObject, key: str, default: int = 0) -> int:
    """Read a number of replicas or restarts, which Kubernetes holds in 32 bits."""
    value = integer(parent, key)
    return default if value is None else min(max(value, 0), INT32_MAX)


def moment(parent: JsonObject, key: str) -> datetime | None:
    """Read an RFC 3339 time; None when there is none."""
    value = parent.get(key)
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def amount(parent: JsonObject, key: str) -> int | None:
    """Read a quantity in nanos; None when there is none, or none that Kubernetes would take."""
    value = parent.get(key)
    if not isinstance(value, str):
        return None
    try:
        nanos = parse_quantity(value)
    except InvalidQuantityError:
        return None
    return nanos if nanos >= 0 else None


def controller_uid(metadata: JsonObject, kinds: Collection[str]) -> str | None:
    """Read the uid of the one owner that controls an object, when it is of these kinds."""
    for owner in children(metadata, "ownerReferences"):
        if owner.get("controller") is True:
            return text(owner, "uid") or None if text(owner, "kind") in kinds else None
    return None


def conditions(status: JsonObject) -> dict[str, JsonObject]:
    """Read the conditions of a status by type."""
    found = ((raw.get("type"), raw) for raw in children(status, "conditions"))
    return {kind: raw for kind, raw in found if isinstance(kind, str)}


def reason(parent: JsonObject) -> str:
    """Read a reason, or ""."""
    return sys.intern(text(parent, "reason")[:_REASON_LENGTH])
