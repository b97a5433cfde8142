"""The text of an error, without system error numbers."""

from __future__ import annotations

import re
from typing import Final

#: The number in "[Errno 111] Connection refused", also in text that a library quotes, and the line
#: of Python's C source in a TLS error.
_NUMBERS: Final = re.compile(r"\[Errno -?[0-9]+\] | \(_ssl\.c:[0-9]+\)")


def reason_of(error: BaseException) -> str:
    """Return the text of an error, without system error numbers and C source lines."""
    return _NUMBERS.sub("", str(error)) or type(error).__name__
