"""The grammar of filters, as a PEG over tokens.

The grammar is intentionally flat: parentheses belong to the first and last token of a clause, and
the parser balances them. A grammar that recurses for each parenthesis would exhaust Python's stack
at about 90 parentheses, and raise `RecursionError` instead of `ParseError`.

Each rule that the parser tries costs about 1 µs, so a token is a single regular expression that
includes the space after it.
"""

from typing import Final

from parsimonious.expressions import Regex
from parsimonious.grammar import Grammar

MAX_LENGTH: Final = 1024
MAX_DEPTH: Final = 16

STRUCTURE: Final = """
    filter     = clause more* end
    more       = join clause
    clause     = opens root name bracket predicate closes
    predicate  = comparison / membership / range / presence
    comparison = operator value
    membership = in lparen value item* rparen
    item       = comma value
    range      = between value and value
"""

SPACE: Final = r"[ \t\r\n]"
# Any character except a letter or `_` may follow a keyword.
_STOP = r"(?![a-z_])"
# Unrolled, so that an unterminated string fails in linear time. \' and '' mean a quote inside.
_SINGLE = r"'[^'\\]*(?:(?:\\'|\\(?!')|'')[^'\\]*)*'(?!')"
STRING: Final = rf"(?:{_SINGLE}|{_SINGLE.replace(chr(39), chr(34))})"
# Digits with other characters after them, as in 2026-01-31 or 0198f0aa, are an unquoted text.
_INTEGER = rf"-?[0-9]+(?=[ \t\r\n,)]|\Z|(?:and|or){_STOP})"

_TOKENS = {
    "opens": rf"{SPACE}*(?:(?:not{_STOP}|\(){SPACE}*)*",
    "root": r"(?-i:(field|labels)\[)",
    "name": rf"({STRING})",
    "bracket": r"\]",
    "operator": rf"((?:[!<>~]=|[=<>])(?![=<>~!])|(?:contains|starts_with|ends_with){_STOP})",
    "value": rf"({STRING}|{_INTEGER}|(?:true|false){_STOP})",
    "in": rf"((?:not{SPACE}+)?in){_STOP}",
    "between": rf"(between){_STOP}",
    "presence": rf"(exists|is{SPACE}+(?:not{SPACE}+)?null){_STOP}",
    "and": rf"and{_STOP}",
    "join": rf"(and|or){_STOP}",
    "lparen": r"\(",
    "rparen": r"\)",
    "comma": ",",
    "closes": rf"(?:\){SPACE}*)*",
    "end": r"\Z",
}

# ASCII only: otherwise U+017F (long s) and U+212A (Kelvin) would match letters of keywords.
GRAMMAR: Final = Grammar(
    STRUCTURE,
    **{
        name: Regex(f"{pattern}{SPACE}*", name=name, ignore_case=True, ascii=True)
        for name, pattern in _TOKENS.items()
    },
)
