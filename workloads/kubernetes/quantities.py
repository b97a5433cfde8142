"""Kubernetes quantities as exact integers.

A quantity is stored in *nanos*: billionths of a core or of a byte. Kubernetes has no finer unit
(`k8s.io/apimachinery/pkg/api/resource`), so integers are exact.
"""

import re
from functools import lru_cache
from typing import Final

NANOS: Final = 10**9
INT64_MAX: Final = 2**63 - 1

# API servers write fewer than 30 characters. Without a limit, a quantity in a report could have a
# million digits.
_LONGEST: Final = 64

_FORM: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))"
    r"(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?0*[0-9]{1,3}))?",
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class InvalidQuantityError(ValueError):
    """The text is not a Kubernetes quantity."""


# The cache serves specs, which repeat values. Measurements rarely repeat.
@lru_cache(maxsize=1024)
def parse_quantity(text: str) -> int:
    """Parse a quantity into nanos: `"250m"` is 250,000,000 and `"1Ki"` is 1,024,000,000,000.

    The pattern is checked first, because Python accepts more forms than Kubernetes (`NaN`, `1_000`,
    full-width digits). Fractions of a nano are rounded away from zero, as in Kubernetes.
    """
    form = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if form is None:
        shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
        raise InvalidQuantityError(f"not a Kubernetes quantity: {shown!r}")
    sign, whole, fraction, bare_fraction, suffix, exponent = form.groups()
    fraction = fraction or bare_fraction or ""
    digits = int((whole or "") + fraction)
    if suffix in _BINARY:
        digits <<= _BINARY[suffix]
        power = 9 - len(fraction)
    else:
        power = 9 - len(fraction) + (int(exponent) if exponent else _DECIMAL.get(suffix, 0))
    nanos = digits * 10**power if power >= 0 else _divide_up(digits, 10**-power)
    return -nanos if sign == "-" else nanos


def to_millicores(nanos: int) -> int:
    """Round up to millicores, at most 2**63 - 1, because columns are signed 64-bit integers."""
    return min(_divide_up(nanos, NANOS // 1000), INT64_MAX)


def to_bytes(nanos: int) -> int:
    """Round up to whole bytes, at most 2**63 - 1."""
    return min(_divide_up(nanos, NANOS), INT64_MAX)


def _divide_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
