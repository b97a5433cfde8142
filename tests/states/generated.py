"""Secrets as a generator of passwords makes them: hypothesis alone would try "00000000"."""

from __future__ import annotations

import random
import string

from hypothesis import strategies as st

#: Alphabets of passwords, tokens and keys.
ALPHABETS = (
    string.ascii_letters + string.digits,
    string.ascii_letters + string.digits + "-_",
    string.ascii_letters + string.digits + "!@#$%&*()-_=+[]{}<>:?",
    string.ascii_uppercase + "234567",
    string.ascii_lowercase + string.digits,
    "0123456789abcdef",
)


def generated(*alphabets: str, least: int = 20, most: int = 64) -> st.SearchStrategy[str]:
    """Return random texts of at least 20 characters, each from a single alphabet."""

    def made(alphabet: str, size: int, seed: int) -> str:
        return "".join(random.Random(seed).choices(alphabet, k=size))

    return st.builds(
        made, st.sampled_from(alphabets or ALPHABETS), st.integers(least, most), st.integers(0)
    )
