"""Suggestions for the syntax of other languages: SQL, CEL, JMESPath and regular expressions."""

import re
from typing import Final

from filterlang.grammar import SPACE, STRING
from filterlang.spelling import closest

NO_FUNCTIONS: Final = "functions are not available"
_NO_PATTERNS: Final = (
    "patterns are not available; use =, CONTAINS, STARTS_WITH or ENDS_WITH with plain text, "
    "or ~= to ignore case"
)

REF: Final = rf"(?:field|labels)\[{STRING}\]"
_OPERATOR_WORDS: Final = (
    "not|in|is|between|exists|contains|has|i?like|starts_?with|ends_?with|eq|ne|[gl]te?|[gl]e"
)
#: The beginning of a term in this or another language.
TERM_START: Final = (
    rf"(?:not\b|!|\(|fields?\b|labels?\b|[\w.-]+{SPACE}*(?:[!<>=~]|(?:{_OPERATOR_WORDS})\b))"
)
_FLAGS: Final = re.IGNORECASE | re.ASCII

# Operators of other languages, without spaces and underscores, and the equivalent operators here.
_OPERATORS: Final = {
    "==": "=", "===": "=", "EQ": "=", "EQUALS": "=",
    "!==": "!=", "<>": "!=", "NE": "!=", "NEQ": "!=", "ISNOT": "!=",
    "LT": "<", "=<": "<=", "LE": "<=", "LTE": "<=",
    "GT": ">", "=>": ">=", "GE": ">=", "GTE": ">=",
    "ICONTAINS": "~=", "HAS": "CONTAINS", "INCLUDES": "CONTAINS",
    "STARTSWITH": "STARTS_WITH", "HASPREFIX": "STARTS_WITH", "BEGINSWITH": "STARTS_WITH",
    "ENDSWITH": "ENDS_WITH", "HASSUFFIX": "ENDS_WITH",
    "!IN": "NOT IN", "NIN": "NOT IN", "NOTIN": "NOT IN",
    "ISNULL": "IS NULL", "NOTNULL": "IS NOT NULL", "ISNOTNULL": "IS NOT NULL",
}  # fmt: skip
_WORD_OPERATORS: Final = ("CONTAINS", "STARTSWITH", "ENDSWITH", "BETWEEN", "EXISTS")
_FUNCTIONS: Final = {
    "HAS": "EXISTS", "EXISTS": "EXISTS", "DEFINED": "EXISTS", "ISNULL": "IS NULL",
    "STARTSWITH": "STARTS_WITH", "ENDSWITH": "ENDS_WITH", "CONTAINS": "CONTAINS",
}  # fmt: skip
_TAKES_VALUE: Final = frozenset({"STARTS_WITH", "ENDS_WITH", "CONTAINS"})

_SYMBOLS: Final = re.compile(r"[!<>=~:&|^*]+")
_PATTERN_SYMBOLS: Final = frozenset({"~", "=~", "~*", "!~", "!~*", "~~", "!~~", "~~*"})
_PATTERN_WORDS: Final = re.compile(r"(?:not\s+)?(?:matches|regexp?|rlike|glob|similar)\b", _FLAGS)
_WORDS: Final = re.compile(r"!?[a-z]\w*", _FLAGS)
_NEGATED: Final = re.compile(
    rf"(?:is{SPACE}+)?(?:not|!)(?:{SPACE}|_)*"
    rf"(exists|between|contains|starts_?with|ends_?with|~=|<=|>=|<|>)(?!\w)",
    _FLAGS,
)
_UNEQUAL: Final = re.compile(
    rf"(?:is{SPACE}+not|not|!)(?={SPACE}*(?:['\"0-9-]|=(?![=~])|true\b|false\b))", _FLAGS
)
_IS: Final = re.compile(rf"is(?={SPACE}*(?:['\"0-9-]|true\b|false\b))", _FLAGS)
_IS_WORD: Final = re.compile(r"is\b", _FLAGS)
_LIKE: Final = re.compile(rf"(not{SPACE}+)?(i?)like{SPACE}*({STRING})?", _FLAGS)
_REF_BEFORE: Final = re.compile(rf"{REF}{SPACE}*\Z", _FLAGS)

_KEY: Final = r"[\w/-]+(?:\.[\w/-]+)*"
# A field in the syntax of this or another language. A method may follow the dots of a bare name.
_ANY_REF: Final = (
    rf"(?:(?P<root>field|label)s?{SPACE}*(?:\.|[\[(]{SPACE}*['\"]?)(?P<key>{_KEY}?)(?:['\"]?{SPACE}*[\])])?"
    rf"|(?P<bare>{_KEY}?))"
)
_ARGUMENT: Final = rf"(?:,{SPACE}*(?P<value>{STRING}){SPACE}*)?"
_CALL: Final = re.compile(rf"(?P<function>\w+)\({SPACE}*{_ANY_REF}{SPACE}*{_ARGUMENT}\)", _FLAGS)
_INVOCATION: Final = rf"\.(?P<function>\w+)\({SPACE}*(?P<value>{STRING})?{SPACE}*\)"
_METHOD: Final = re.compile(_ANY_REF + _INVOCATION, _FLAGS)
_METHOD_BEHIND: Final = re.compile(_INVOCATION, _FLAGS)
_ANY_CALL: Final = re.compile(r"[\w.]+\(", _FLAGS)
_NAME: Final = re.compile(rf"{_ANY_REF}(?={SPACE}*(?:[!<>=~:]|(?:{_OPERATOR_WORDS})\b|\Z))", _FLAGS)
_QUOTED_NAME: Final = re.compile(rf"['\"](?P<key>{_KEY})['\"]{SPACE}*(?=[!<>=~])", _FLAGS)
_NEGATION: Final = re.compile(rf"[!-](?={SPACE}*(?:field|labels|\(|\w+[(.]))", _FLAGS)


def is_call(text: str, position: int) -> bool:
    """Return whether the text is a function call."""
    return _ANY_CALL.match(text, position) is not None


def term(text: str, position: int) -> str:
    """Suggest the equivalent of a term in another language."""
    if _NEGATION.match(text, position):
        return f"did you mean NOT in place of {text[position]} ?"
    for pattern in (_CALL, _METHOD):
        found = pattern.match(text, position)
        if found and (predicate := _applied(found)):
            return f"write {_ref(found)} {predicate}"
    if is_call(text, position) and not _NAME.match(text, position):
        return NO_FUNCTIONS
    if quoted := _QUOTED_NAME.match(text, position):
        return f"write field['{quoted['key']}']"
    named = _NAME.match(text, position)
    if named is None or (named["bare"] or "").upper() in {"AND", "OR"}:
        return ""
    return f"write {_ref(named)}"


def _ref(found: re.Match[str]) -> str:
    key = found["key"] or found["bare"]
    if (found["root"] or "").lower() == "label":
        return f"labels['{key}']"
    label = re.fullmatch(r"labels?\.(.+)", key)
    return f"labels['{label[1]}']" if label else f"field['{key}']"


def _applied(found: re.Match[str]) -> str:
    """Return the predicate for a function call; "" for an unknown function."""
    predicate = _FUNCTIONS.get(found["function"].upper().replace("_", ""), "")
    if (predicate in _TAKES_VALUE) is not bool(found["value"]):
        return ""
    return f"{predicate} {found['value']}" if found["value"] else predicate


def predicate(text: str, position: int) -> str:
    """Suggest the equivalent of the text after a field, in the syntax of another language."""
    before = _REF_BEFORE.search(text, 0, position)
    ref = before[0].rstrip() if before else "the term"
    if method := _METHOD_BEHIND.match(text, position):
        applied = _applied(method)
        return f"write {ref} {applied}" if applied else NO_FUNCTIONS
    if like := _LIKE.match(text, position):
        return _like(ref, like)
    if negated := _NEGATED.match(text, position):
        operator = negated[1].upper()
        return f"write NOT {ref} {_OPERATORS.get(operator, operator)}"
    guess = _operator(text, position)
    return f"did you mean {guess} ?" if guess else _explained(text, position)


def _operator(text: str, position: int) -> str:
    if _UNEQUAL.match(text, position):
        return "!="
    if _IS.match(text, position):
        return "="
    if word := _WORDS.match(text, position):
        key = word[0].upper().replace("_", "")
        key = key if key in _OPERATORS else closest(key, _WORD_OPERATORS)
        return _OPERATORS.get(key, key)
    symbols = _SYMBOLS.match(text, position)
    return _OPERATORS.get(symbols[0], "") if symbols else ""


def _explained(text: str, position: int) -> str:
    symbols = _SYMBOLS.match(text, position)
    if _PATTERN_WORDS.match(text, position) or (symbols and symbols[0] in _PATTERN_SYMBOLS):
        return _NO_PATTERNS
    if symbols and symbols[0] == ":":
        return "use = for the whole text, or CONTAINS for a part of it"
    return "use IS NULL or IS NOT NULL, or = with a value" if _IS_WORD.match(text, position) else ""


def _like(ref: str, like: re.Match[str]) -> str:
    negation, ignores_case, pattern = like.groups()
    text = (pattern or "''")[1:-1]
    plain = text.strip("%")
    starts_open, ends_open = text.startswith("%"), text.endswith("%")
    operator = {
        (False, False): "=", (False, True): "STARTS_WITH",
        (True, False): "ENDS_WITH", (True, True): "CONTAINS",
    }[starts_open, ends_open]  # fmt: skip
    if ignores_case:
        operator = "~=" if operator == "CONTAINS" else ""
    if not plain or not operator or set(r"%_\'\"") & set(plain):
        return _NO_PATTERNS
    written = f"{operator} '{plain}'"
    if negation:
        written = f"NOT {ref} {written}"
    return f"write {written}, because % and _ are ordinary characters"
