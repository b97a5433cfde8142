"""The text of an error, for people."""

from __future__ import annotations

import re
from typing import Final

#: "[Errno 111] Connection refused" of the system, also where a library quotes it, and the line of
#: Python's C code that raises an error of TLS.
_NUMBERS: Final = re.compile(r"\[Errno -?[0-9]+\] | \(_ssl\.c:[0-9]+\)")


def reason_of(error: BaseException) -> str:
    """Return the cause of an error in words, without the numbers of system and source."""
    return _NUMBERS.sub("", str(error)) or type(error).__name__
