"""Parse text to nodes: match the grammar, read the clauses in order, and balance parentheses."""

import re
from typing import Any, Final, NamedTuple

from parsimonious.exceptions import ParseError

from filterlang import diagnosis
from filterlang.errors import Code, FilterError
from filterlang.grammar import GRAMMAR, MAX_DEPTH, MAX_LENGTH
from filterlang.nodes import And, Node, Not, Or, Term, Value

# PostgreSQL cannot store NUL, and UTF-8 cannot encode a lone surrogate.
_REFUSED: Final = re.compile("[\0\ud800-\udfff]")
_OPENING: Final = re.compile(r"not|\(", re.IGNORECASE | re.ASCII)
_QUOTES: Final = {quote: re.compile(rf"\\{quote}|{quote}{quote}") for quote in "'\""}


def parse(text: str) -> Node | None:
    """Return the node of ``text``, or None (no filter) if it is blank.

    Raise only ``FilterError``, whatever the text contains.
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(
            Code.TOO_LONG, MAX_LENGTH, f"expected at most {MAX_LENGTH} characters, got {len(text)}"
        )
    if refused := _REFUSED.search(text):
        what = "NUL" if refused[0] == "\0" else "a lone surrogate"
        raise FilterError(Code.CHARACTER, refused.start(), f"{what} is not allowed in a filter")
    if not text.strip(" \t\r\n"):
        return None
    try:
        tree = GRAMMAR.parse(text)
    except ParseError as error:
        raise diagnosis.explain(text, error.pos, error.expr.name) from None
    return _read(tree)


class _Group(NamedTuple):
    """An open parenthesis or the whole filter: alternatives (OR), each a list of nodes (AND)."""

    position: int
    negated: bool
    alternatives: list[list[Node]]

    def add(self, node: Node, *, negated: bool) -> None:
        self.alternatives[-1].append(Not(node) if negated else node)

    def close(self) -> Node:
        branches = [
            nodes[0] if len(nodes) == 1 else And(tuple(nodes)) for nodes in self.alternatives
        ]
        return branches[0] if len(branches) == 1 else Or(tuple(branches))


# parsimonious has no types: its nodes are Any, and the indexes below follow `grammar.STRUCTURE`.
def _read(tree: Any) -> Node:
    first, more, _ = tree.children
    groups = [_Group(0, negated=False, alternatives=[[]])]
    _read_clause(first, groups)
    for pair in more.children:
        join, clause = pair.children
        if join.match[1].lower() == "or":
            groups[-1].alternatives.append([])
        _read_clause(clause, groups)
    if len(groups) > 1:
        raise FilterError(Code.SYNTAX, groups[-1].position, "'(' is never closed")
    return groups[0].close()


def _read_clause(clause: Any, groups: list[_Group]) -> None:
    opens, root, name, _, predicate, closes = clause.children
    negated = False
    for token in _OPENING.finditer(opens.full_text, opens.start, opens.end):
        if token[0] != "(":
            negated = not negated
            continue
        if len(groups) > MAX_DEPTH:
            raise FilterError(
                Code.TOO_DEEP, token.start(), f"expected at most {MAX_DEPTH} nested parentheses"
            )
        groups.append(_Group(token.start(), negated, [[]]))
        negated = False
    groups[-1].add(_read_term(root, name, predicate.children[0]), negated=negated)
    for position in range(closes.start, closes.end):
        if closes.full_text[position] != ")":
            continue
        if len(groups) == 1:
            raise FilterError(Code.SYNTAX, position, "')' has no matching '('")
        group = groups.pop()
        groups[-1].add(group.close(), negated=group.negated)


def _read_term(root: Any, name: Any, predicate: Any) -> Term:
    text = _unquote(name.match[1])
    if root.match[1] == "labels":
        text = f"labels.{text}"
    if predicate.expr_name == "presence":
        return Term(text, name.start, _operator(predicate), predicate.start)
    token, *rest = predicate.children
    operands: tuple[Any, ...]
    if predicate.expr_name == "comparison":
        operands = tuple(rest)
    elif predicate.expr_name == "range":
        operands = rest[0], rest[2]
    else:
        operands = rest[1], *(item.children[1] for item in rest[2].children)
    values = tuple(_read_value(operand) for operand in operands)
    return Term(text, name.start, _operator(token), token.start, values)


def _operator(token: Any) -> str:
    return " ".join(token.match[1].upper().split())


def _read_value(token: Any) -> Value:
    written: str = token.match[1]
    quoted = written[0] in _QUOTES
    return Value(_unquote(written) if quoted else written, quoted, token.start)


def _unquote(written: str) -> str:
    quote, body = written[0], written[1:-1]
    return _QUOTES[quote].sub(quote, body) if quote in body else body
