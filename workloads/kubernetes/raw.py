"""Typed access to raw JSON objects.

The API server omits empty fields or writes null, and a custom controller can write anything into a
status. A value that is missing, null or of another type counts as empty, so that one unusual object
does not prevent the report of a cluster.
"""

import sys
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from workloads.kubernetes.quantities import InvalidQuantityError, parse_quantity

JsonObject: TypeAlias = Mapping[str, object]

INT32_MAX: Final = 2**31 - 1
# A reason is a code, but a status can contain any text. Longer reasons are truncated.
_REASON_LENGTH: Final = 128


def child(parent: JsonObject, key: str) -> JsonObject:
    """Read an object; {} if it is missing."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def children(parent: JsonObject, key: str) -> list[JsonObject]:
    """Read the objects of a list; [] if it is missing."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(parent: JsonObject, key: str) -> str:
    """Read a string; "" if it is missing.

    Kubernetes accepts NUL in an image name, but PostgreSQL rejects it. Without the replacement, a
    single pod could prevent the report of the cluster.
    """
    value = parent.get(key)
    return without_nul(value) if isinstance(value, str) else ""


def without_nul(value: str) -> str:
    """Replace NUL, which databases reject."""
    return value.replace("\0", "\ufffd")


def integer(parent: JsonObject, key: str) -> int | None:
    """Read an integer; None if it is missing."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(parent: JsonObject, key: str, default: int = 0) -> int:
    """Read a number of replicas or restarts, which has 32 bits in Kubernetes."""
    value = integer(parent, key)
    return default if value is None else min(max(value, 0), INT32_MAX)


def moment(parent: JsonObject, key: str) -> datetime | None:
    """Read an RFC 3339 time; None if it is missing."""
    value = parent.get(key)
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def amount(parent: JsonObject, key: str) -> int | None:
    """Read a quantity in nanos; None if it is missing or invalid."""
    value = parent.get(key)
    if not isinstance(value, str):
        return None
    try:
        nanos = parse_quantity(value)
    except InvalidQuantityError:
        return None
    return nanos if nanos >= 0 else None


def controller_uid(metadata: JsonObject, kinds: Collection[str]) -> str | None:
    """Read the uid of the controlling owner if its kind is one of these."""
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
