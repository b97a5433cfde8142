"""Why a text does not match the grammar, in words that help the one who wrote it."""

import re
from typing import Final

from filterlang.errors import Code, FilterError
from filterlang.grammar import SPACE
from filterlang.spelling import closest

_TERM = "expected a term such as field['name'], NOT or '('"
# By the outermost rule that fails at the furthest position: parsimonious keeps the last one.
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

# How other languages write our operators.
_OPERATORS: Final = {
    "==": "=",
    "===": "=",
    ":": "=",
    "EQ": "=",
    "IS": "=",
    "!": "!=",
    "!==": "!=",
    "<>": "!=",
    "NE": "!=",
    "LT": "<",
    "=<": "<=",
    "LE": "<=",
    "LTE": "<=",
    "GT": ">",
    "=>": ">=",
    "GE": ">=",
    "GTE": ">=",
    "~": "~=",
    "=~": "~=",
    "ILIKE": "~=",
    "LIKE": "CONTAINS",
    "HAS": "CONTAINS",
    "STARTSWITH": "STARTS_WITH",
    "ENDSWITH": "ENDS_WITH",
    "NOT": "NOT IN",
}
_WORD_OPERATORS: Final = ("CONTAINS", "STARTS_WITH", "ENDS_WITH", "BETWEEN", "EXISTS")
_JOINS: Final = {"&": "AND", "&&": "AND", ",": "AND", ";": "AND", "|": "OR", "||": "OR"}

_WORD: Final = re.compile(r"\w[\w./-]*", re.ASCII)
_SYMBOL: Final = re.compile(r"[!<>=~:&|,;]+")
_REF: Final = re.compile(
    rf"(field|labels){SPACE}*\[{SPACE}*[\"']([\w./-]+)[\"']", re.IGNORECASE | re.ASCII
)
_GLUED: Final = re.compile(r"(and|or|not)(?:field|labels)\b", re.IGNORECASE | re.ASCII)
_BARE: Final = re.compile(r"[^ \t\r\n()\[\],'\"]+")


def explain(text: str, position: int, rule: str) -> FilterError:
    """Turn parsimonious' furthest failure in ``text``, and the rule that failed, into an error."""
    quote = text[position : position + 1]
    if rule in {"name", "value"} and quote in {"'", '"'}:
        return FilterError(
            Code.SYNTAX, position, f"unterminated quoted {rule}", f"close it with {quote}"
        )
    return FilterError(Code.SYNTAX, position, _EXPECTED[rule], _suggest(text, position, rule))


def _suggest(text: str, position: int, rule: str) -> str:
    if position == len(text):
        return ""
    word = match[0] if (match := _WORD.match(text, position)) else ""
    symbol = match[0] if (match := _SYMBOL.match(text, position)) else ""
    bare = match[0] if (match := _BARE.match(text, position)) else ""
    match rule:
        case "filter" | "clause" | "root":
            return _suggest_term(text, position, word)
        case "name" | "value":
            return f"quote the {rule}: '{bare}'" if bare else ""
        case "predicate":
            guess = _OPERATORS.get(symbol or word.upper()) or closest(word, _WORD_OPERATORS)
            return f"did you mean {guess} ?" if guess else ""
        case "end":
            return _suggest_join(text, position, symbol)
    return ""


def _suggest_term(text: str, position: int, word: str) -> str:
    if written := _REF.match(text, position):
        return f"write {written[1].lower()}['{written[2]}']"
    if glued := _GLUED.match(text, position):
        return f"put a space after {glued[1]}"
    if not word or word.upper() in {"AND", "OR"}:
        return ""
    return f"write field['{word}']"


def _suggest_join(text: str, position: int, symbol: str) -> str:
    if text[position - 1] in "'\"" and _WORD.match(text, position):
        return f"write a quote inside a value twice: {text[position - 1] * 2}"
    if glued := _GLUED.match(text, position):
        return f"put a space after {glued[1]}"
    if symbol in _JOINS:
        return f"did you mean {_JOINS[symbol]} ?"
    return "put AND or OR between two terms"
