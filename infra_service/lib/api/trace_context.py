"""Parse the trace id of a request (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
from typing import Final

# Version, trace id, parent id and flags. Version ff and ids of zeros are invalid. Version 00 has
# exactly 55 characters. A later version may continue after a hyphen.
_TRACEPARENT: Final = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


def trace_id_of(traceparent: str) -> str:
    """Return the 32 hexadecimal digits of the trace id, or "" if the header is malformed."""
    match = _TRACEPARENT.fullmatch(traceparent)
    return match[1] if match else ""
