"""Provider versions from ``.terraform.lock.hcl``.

Terraform and OpenTofu write only ``provider`` blocks with strings and lists of strings
(``internal/depsfile``), so the parser supports only this part of HCL. It reads each character once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from filterlang.versions import sort_key
from states.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = ".terraform.lock.hcl"

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*|//[^\n]*)
      |(?P<newline>(?:\n[ \t\r]*)+)
      |"(?P<text>[^"\\\n$%]*)"
      |(?P<word>[A-Za-z_][0-9A-Za-z_-]*)
      |(?P<mark>[{}\[\],=])""",
    re.VERBOSE | re.ASCII,
)
#: A host, a namespace and a type, in the full form that Terraform writes.
_SOURCE: Final = re.compile(r"[0-9A-Za-z.:-]{1,255}(?:/[0-9A-Za-z_-]{1,255}){2}", re.ASCII)
_MOST_OF_CONSTRAINTS: Final = 1_000


class Provider(NamedTuple):
    """A provider and its locked version."""

    source: str
    version: str
    constraints: str


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str) -> list[Provider]:
    """Return the providers in a lock file, ordered by source address.

    Raises:
        InvalidFile: the text is not a lock file.
    """
    tokens = _tokens(text)
    found: dict[str, Provider] = {}
    token = _after_newlines(tokens)
    while token.kind != "end":
        provider = _block(tokens, token)
        if provider.source in found:
            raise _fault(token.line, f"{provider.source} already has a block")
        found[provider.source] = provider
        token = _after_newlines(tokens)
    return [found[source] for source in sorted(found)]


def _tokens(text: str) -> Iterator[_Token]:
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _fault(line, "expected the format that terraform init writes")
        kind = str(match.lastgroup)
        if kind != "space":
            yield _Token(kind, match[kind], line)
        line += match[0].count("\n")
        position = match.end()
    yield _Token("end", "", line)


def _block(tokens: Iterator[_Token], first: _Token) -> Provider:
    """Read ``provider "…" {``, its arguments and ``}``."""
    if (first.kind, first.text) != ("word", "provider"):
        raise _fault(first.line, 'expected provider "…" {')
    source = _expect(tokens, "text")
    if _SOURCE.fullmatch(source.text) is None:
        raise _fault(source.line, "expected a provider's address, such as host/namespace/type")
    _expect(tokens, "mark", "{")
    _expect(tokens, "newline")
    arguments: dict[str, str] = {}
    token = _after_newlines(tokens)
    while token.text != "}" or token.kind != "mark":
        if token.kind != "word" or token.text not in {"version", "constraints", "hashes"}:
            raise _fault(token.line, "expected version, constraints, hashes or }")
        if token.text in arguments:
            raise _fault(token.line, f"{token.text} is repeated")
        _expect(tokens, "mark", "=")
        arguments[token.text] = _value(tokens, token)
        _expect(tokens, "newline")
        token = _after_newlines(tokens)
    if "version" not in arguments:
        raise _fault(token.line, f"{source.text} has no version")
    return Provider(source.text, arguments["version"], arguments.get("constraints", ""))


def _value(tokens: Iterator[_Token], name: _Token) -> str:
    if name.text == "hashes":
        _list(tokens)
        return ""
    value = _expect(tokens, "text")
    if name.text == "version" and sort_key(value.text) is None:
        raise _fault(value.line, "expected a version, such as 5.31.0")
    if len(value.text) > _MOST_OF_CONSTRAINTS:
        raise _fault(value.line, f"expected at most {_MOST_OF_CONSTRAINTS} characters")
    return value.text


def _list(tokens: Iterator[_Token]) -> None:
    """Skip a list of strings."""
    _expect(tokens, "mark", "[")
    token = _after_newlines(tokens)
    while (token.kind, token.text) != ("mark", "]"):
        if token.kind != "text":
            raise _fault(token.line, 'expected a hash in quotes, or "]"')
        token = _after_newlines(tokens)
        if (token.kind, token.text) == ("mark", ","):
            token = _after_newlines(tokens)
        elif (token.kind, token.text) != ("mark", "]"):
            raise _fault(token.line, 'expected "," or "]"')


def _after_newlines(tokens: Iterator[_Token]) -> _Token:
    return next(token for token in tokens if token.kind != "newline")


def _expect(tokens: Iterator[_Token], kind: str, text: str | None = None) -> _Token:
    token = next(tokens)
    if token.kind == kind and text in {None, token.text}:
        return token
    wanted = {"text": "a text in quotes", "newline": "the end of the line"}.get(kind, f'"{text}"')
    raise _fault(token.line, f"expected {wanted}")


def _fault(line: int, because: str) -> InvalidFile:
    return InvalidFile(NAME, because, line)
