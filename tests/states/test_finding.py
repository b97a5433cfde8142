"""Search for secrets in texts: the results equal those of a plain search."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from states.document.encodings import PART, search_patterns
from states.document.finding import Finder
from states.document.marked_places import ESCAPED, Cause, HiddenReason, MarkedPlace
from states.document.work_limit import Effort

#: Of so many bytes, texts are read in pieces.
PIECE = 64 * 1024
SECRET = "correct-horse"
CAUSE = Cause(HiddenReason.CONTAINS_SENSITIVE_VALUE, MarkedPlace("password"))


def telling(secrets: Sequence[str], texts: Sequence[str]) -> set[int]:
    finder = Finder(Effort(2**30))
    for secret in secrets:
        finder.add(secret, CAUSE)
    return set(finder.containing(texts))


# Two letters, so that secrets have parts in common with each other and with all that is read.
@given(
    secrets=st.lists(st.text("ab", min_size=6, max_size=14), min_size=1, max_size=4),
    texts=st.lists(st.text("ab", max_size=40), min_size=1, max_size=6),
)
@example(["aaaaaa", "baaaaaab"], ["aaaaaa", "b", "baaaaaa", "b" * 9, "aaaaaaa"])
@example(["aaaaab", "aaaaac", "aaaaad"], ["aaaaad", "aaaaac", "aaaaab", "aaaaae"])
@example(["aaaabbbb"], ["aaaabbbb", "b", "baaaabbbb"])
@example(["aaaaaaba", "baaaaaab"], ["bbaaaaaabb", "bbaaaaaaba"])
def test_index_finds_the_same_as_a_plain_search(secrets: list[str], texts: list[str]) -> None:
    expected = {i for i, text in enumerate(texts) if any(secret in text for secret in secrets)}

    assert telling(secrets, texts) == expected


@pytest.mark.parametrize("secret", ["", "abcde"])
def test_short_secrets_are_not_searched(secret: str) -> None:
    assert telling([secret], [secret, "", f"x{secret}x"]) == set()


@pytest.mark.parametrize("place", [0, 1, *range(PIECE - 15, PIECE + 2), 2 * PIECE - 5, 3 * PIECE])
@pytest.mark.parametrize(
    ("secret", "written"),
    [(SECRET, SECRET), ("back\\slash", r"back\\\\slash")],
    ids=["as it is", "escaped twice"],
)
def test_secret_is_found_at_any_position_of_a_long_text(
    secret: str, written: str, place: int
) -> None:
    text = "." * place + written + "." * (3 * PIECE - place)

    assert telling([secret], [text]) == {0}
    assert telling([secret], ["." * len(text)]) == set()


@pytest.mark.parametrize("length", [130, 5000])
def test_escapes_in_a_long_secret_are_not_divided(length: int) -> None:
    unit = r"a%2Fb\n%3D&c"
    for shift in range(len(unit)):
        secret = (unit * length)[shift : shift + length]
        texts = [f"x={json.dumps(secret)}", quote(secret), html.escape(secret), secret]

        assert telling([secret], texts) == {0, 1, 2, 3}


@pytest.mark.parametrize("byte", ["%fe", "%FF", "%80"])
def test_secret_with_an_encoded_byte_that_is_not_utf_8(byte: str) -> None:
    secret = rf"correct&{byte}horse\u005cn"

    assert telling([secret], [html.escape(secret), json.dumps(secret)]) == {0, 1}


def test_many_texts_are_searched() -> None:
    texts = [f"{'.' * 30_000}{SECRET if i % 3 == 0 else ''}" for i in range(10)]

    assert telling([SECRET, "another-secret"], texts) == {0, 3, 6, 9}
    assert telling(["other-secret"], texts) == set()


def test_only_the_text_that_is_escaped_without_end_is_not_understood() -> None:
    endless = "%" + "25" * 50 + "41"

    assert telling([SECRET], ["%" + "25" * 6 + "41", "%" + "25" * 7 + "41"]) == {1}
    assert telling([SECRET], ["50% off", endless, f"{SECRET}%", "\\n"]) == {1, 2}


def test_each_text_has_its_cause() -> None:
    finder = Finder(Effort(0))
    other = Cause(HiddenReason.CONTAINS_SENSITIVE_VALUE, MarkedPlace("token"))
    finder.add(SECRET, CAUSE)
    finder.add("another-secret", other)

    found = finder.containing(
        [f"x {SECRET}", "another-secret y", "nothing", "%" + "25" * 50 + "41"]
    )

    assert found == {0: CAUSE, 1: other, 3: ESCAPED}


@pytest.mark.parametrize(
    "secret", ["a&b c+d", "a&b+cd", "".join(f"{number}&" for number in range(100, 160))]
)
def test_patterns_of_a_secret_with_escapes(secret: str) -> None:
    """They are the middle of the secret without its escapes, with the least length at 6."""
    start = max(0, (len(secret) - PART) // 2)
    middle = secret[start : start + PART].encode()

    patterns = search_patterns(secret.replace("&", r"\u0026"), Effort(1_000))

    assert {middle, middle.hex().encode()} <= patterns
