"""Explanations of syntax errors, with suggestions.

A suggestion that the user can apply must have the intended meaning. If the intention is uncertain,
for example with the wildcards of another language, the suggestion explains the rule instead.
"""

import re
from collections.abc import Callable
from typing import Final

from filterlang import foreign
from filterlang.characters import misplaced_character
from filterlang.errors import Code, FilterError
from filterlang.foreign import REF, TERM_START
from filterlang.grammar import SPACE

_TERM = "expected a term such as field['name'], NOT or '('"
# The keys are the outermost rules that can fail at the furthest position, because parsimonious
# reports the last rule.
_EXPECTED: Final = {
    "filter": _TERM,
    "clause": _TERM,
    "root": _TERM,
    "name": "expected a quoted name",
    "bracket": "expected ]",
    "predicate": "expected an operator",
    "value": "expected a quoted value, an integer, true or false",
    "lparen": "expected '('",
    "rparen": "expected ',' or ')'",
    "and": "expected AND",
    "end": "expected AND, OR, ')' or the end",
}
_JOINS: Final = {"&": "AND", "&&": "AND", "|": "OR", "||": "OR"}
_OR: Final = "put AND or OR between two terms"

_JOIN: Final = re.compile(r"[&|]+")
_GLUED: Final = re.compile(r"(and|or|not)(?:field|labels)\b", re.IGNORECASE | re.ASCII)
_GLUED_VALUE: Final = re.compile(r"\w+?(and|or)(?:field|labels)", re.IGNORECASE | re.ASCII)
_STARTS_TERM: Final = re.compile(rf"{SPACE}*{TERM_START}", re.IGNORECASE | re.ASCII)
_BARE_NAME: Final = re.compile(r"[\w./-]+", re.ASCII)
# Up to the end of a value: words with spaces between them form a single value.
_BARE_VALUE: Final = re.compile(
    rf"[^\W_][\w.:/@+-]*(?:{SPACE}+(?!(?:and|or){SPACE})[\w.:/@+-]+)*(?={SPACE}*(?:[),]|\Z)|{SPACE}+(?:and|or){SPACE})",
    re.IGNORECASE,
)
_DECIMAL: Final = re.compile(
    rf"[+-]?(?:[0-9]*\.[0-9]+|[0-9]+\.|[0-9]+(?:\.[0-9]+)?e[+-]?[0-9]+)(?={SPACE}|[,)]|\Z)"
    rf"|\+[0-9]+|0x[0-9a-f]+\b|[0-9]+(?:_[0-9]+)+\b",
    re.IGNORECASE | re.ASCII,
)
_NULL: Final = re.compile(r"null|nil|undefined", re.IGNORECASE | re.ASCII)
_EQUALITY_BEFORE: Final = re.compile(
    rf"(?P<ref>{REF}){SPACE}*(?P<operator>!?=){SPACE}*\Z", re.IGNORECASE | re.ASCII
)
_OTHER_FIELD: Final = re.compile(r"(?:field|labels)\s*[\[.]", re.IGNORECASE | re.ASCII)


def explain(text: str, position: int, rule: str) -> FilterError:
    """Convert the furthest failure of parsimonious, and the rule that failed, to an error."""
    quote = text[position : position + 1]
    if rule in {"name", "value"} and quote in {"'", '"'}:
        suggestion = f"close it with {quote}" if rule == "name" else _close(text, position)
        return FilterError(Code.SYNTAX, position, f"unterminated quoted {rule}", suggestion)
    if misplaced := misplaced_character(text):
        return misplaced
    return FilterError(Code.SYNTAX, position, _EXPECTED[rule], _suggest(text, position, rule))


def _close(text: str, position: int) -> str:
    quote, rest = text[position], text[position + 1 :]
    other = "'" if quote == '"' else '"'
    if rest.endswith(f"\\{quote}"):
        return f"a value in {quote} cannot end with \\"
    if rest[-1:] == other and rest.count(other) == 1:
        return f"write {quote} at the end in place of {other}"
    # If quotes or brackets follow, the value probably ends before them.
    return "" if set("'\"[](),=") & set(rest) else f"close it with {quote}"


def _suggest(text: str, position: int, rule: str) -> str:
    suggest = _SUGGESTIONS.get(rule)
    return suggest(text, position) if suggest and position < len(text) else ""


def _suggest_term(text: str, position: int) -> str:
    glued = _GLUED.match(text, position)
    return f"put a space after {glued[1]}" if glued else foreign.term(text, position)


def _suggest_name(text: str, position: int) -> str:
    bare = _BARE_NAME.match(text, position)
    return f"quote the name: '{bare[0]}'" if bare else ""


def _suggest_value(text: str, position: int) -> str:
    if glued := _GLUED_VALUE.match(text, position):
        return f"put a space before and after {glued[1]}"
    if _DECIMAL.match(text, position):
        return "numbers are integers; quote text and versions"
    if _OTHER_FIELD.match(text, position):
        return "fields cannot be compared with each other"
    if bare := _BARE_VALUE.match(text, position):
        return _suggest_for_bare(text, position, bare[0])
    return foreign.NO_FUNCTIONS if foreign.is_call(text, position) else ""


def _suggest_for_bare(text: str, position: int, bare: str) -> str:
    if not _NULL.fullmatch(bare):
        return f"quote the value: '{bare}'"
    before = _EQUALITY_BEFORE.search(text, 0, position)
    if before is None:
        return "test for null with IS NULL or IS NOT NULL"
    return f"write {before['ref']} IS {'NOT ' if before['operator'] == '!=' else ''}NULL"


def _suggest_join(text: str, position: int) -> str:
    if glued := _GLUED.match(text, position):
        return f"put a space after {glued[1]}"
    if join := _JOIN.match(text, position):
        follows = _STARTS_TERM.match(text, join.end())
        return f"did you mean {_JOINS[join[0]]} ?" if follows and join[0] in _JOINS else ""
    if text[position] in ",;":
        return f"{_OR}, not {text[position]}"
    if _STARTS_TERM.match(text, position):
        return _OR
    quote = text[position - 1]
    is_inside = quote in "'\"" and text[position].isalnum() and quote in text[position:]
    return f"write a quote inside a value twice: {quote * 2}" if is_inside else ""


_SUGGESTIONS: Final[dict[str, Callable[[str, int], str]]] = {
    **dict.fromkeys(("filter", "clause", "root"), _suggest_term),
    "name": _suggest_name,
    "predicate": foreign.predicate,
    "value": _suggest_value,
    "end": _suggest_join,
}
