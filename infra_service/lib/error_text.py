"""The text of an error, without numbers of the system."""

from __future__ import annotations

import re
from typing import Final

#: The number in "[Errno 111] Connection refused", also where a library quotes the text, and the
#: line of Python's C code that raised a TLS error.
_NUMBERS: Final = re.compile(r"\[Errno -?[0-9]+\] | \(_ssl\.c:[0-9]+\)")


def reason_of(error: BaseException) -> str:
    """Return the text of an error without the system's number and the line of source."""
    return _NUMBERS.sub("", str(error)) or type(error).__name__
