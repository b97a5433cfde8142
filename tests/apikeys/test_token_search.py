"""Tokens of ours are found in any text, and nothing else is."""

import base64
import json
import re
import string
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apikeys.token_search import MOST, find_tokens
from apikeys.tokens import LENGTH, TokenKind, _checksum, generate, kind_of


def made(kind: TokenKind, random: str) -> str:
    body = kind.value + random
    return body + _checksum(body)


RANDOM = st.text(string.ascii_letters + string.digits, min_size=32, max_size=32)
TOKENS: Final = st.builds(made, st.sampled_from(list(TokenKind)), RANDOM)
#: Also prefixes and continuations of tokens, escapes, and ends of words.
AROUND: Final = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(["isk_", "is", "iss_ab", "\\", '"', "A" * 40]))
).map("".join)


def escaped(text: str, times: int) -> bytes:
    """Return the text with each character as JSON may escape it, in JSON within JSON."""
    written = "".join(f"\\u{ord(character):04x}" for character in text)
    for _ in range(times - 1):
        written = json.dumps(written)[1:-1]
    return written.encode()


@given(AROUND, TOKENS, AROUND)
def test_as_it_is_written(before: str, token: str, after: str) -> None:
    for text in (f"{before}{token}{after}", json.dumps(before + token + after)):
        assert token in find_tokens(text.encode("utf-8", "surrogatepass"))


@given(AROUND, TOKENS, AROUND, st.integers(1, 4))
def test_escaped_token_is_found(before: str, token: str, after: str, times: int) -> None:
    around = (json.dumps(part)[1:-1].encode() for part in (before, after))
    half = token[:7].encode() + escaped(token[7:], times)
    for inner in (escaped(token, times), half, escaped(token, times).upper().replace(b"U", b"u")):
        assert find_tokens(b'"' + inner + b'"') == [token]
    first, last = around
    assert token in find_tokens(b'"' + first + b'","' + half + b'","' + last + b'"')


@given(st.binary(max_size=40), TOKENS, st.binary(max_size=40))
def test_token_in_base64_is_found(before: bytes, token: str, after: bytes) -> None:
    whole = before + token.encode() + after
    for encoded in (base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
        for text in (encoded, encoded.rstrip(b"="), b'{"x":"' + encoded + b'"}'):
            assert token in find_tokens(text)


FORMS = st.from_regex(re.compile(rf"is[kps]_[0-9A-Za-z]{{{LENGTH - 4}}}", re.ASCII), fullmatch=True)


@pytest.mark.slow
@given(st.one_of(AROUND, FORMS, st.lists(FORMS, max_size=3).map("".join)))
def test_arbitrary_text_contains_no_token(text: str) -> None:
    """A text of the form has a checksum that is right once in 56,800 million times."""
    for written in (
        text.encode("utf-8", "surrogatepass"),
        base64.b64encode(text.encode(errors="replace")),
    ):
        assert all(kind_of(token) for token in find_tokens(written))
    if not any(kind_of(text[i : i + LENGTH]) for i in range(len(text))):
        assert find_tokens(text.encode("utf-8", "surrogatepass")) == []


@pytest.mark.parametrize("kind", TokenKind)
def test_token_with_a_wrong_character_is_not_found(kind: TokenKind) -> None:
    token = generate(kind)
    for position in range(LENGTH):
        for other in (c for c in string.ascii_letters[:3] + "0_é" if c != token[position]):
            assert find_tokens((token[:position] + other + token[position + 1 :]).encode()) == []
    assert find_tokens(token[:-1].encode()) == []
    assert find_tokens(f"{token[:20]}\n{token[20:]}".encode()) == []


def test_several_tokens_are_each_found_once() -> None:
    tokens = [generate(kind) for kind in TokenKind]
    text = "".join(tokens + tokens).encode() + base64.b64encode(tokens[0].encode())

    assert find_tokens(text) == tokens


def test_number_of_matches_is_limited() -> None:
    many = [generate(TokenKind.SERVICE) for _ in range(MOST + 5)]

    assert find_tokens(" ".join(many).encode()) == many[:MOST]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", [b"\\", b"\\u00", b"\\u0069", b"isk_", b"iss_a", b"aXNrX", b"lza1", b"\xff", b"i\\"]
)
def test_search_time_is_linear_for_adversarial_input(piece: bytes) -> None:
    """A search that took the square of the length would take hours for a megabyte."""
    assert find_tokens(piece * (1_000_000 // len(piece))) == []
