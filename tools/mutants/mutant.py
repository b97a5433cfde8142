"""Generate mutants: all changes of a module's source code that may change its behaviour."""

from __future__ import annotations

import ast
import difflib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor

from tools.mutants.operators import OPERATORS


@dataclass(frozen=True)
class Mutant:
    """A module with a single change."""

    room: str
    lines: range
    original: str
    source: str
    was: str
    becomes: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the key of the mutant in ``alive.toml``.

        The key does not contain the line number, which changes often.
        """
        return self.room, self.was, self.becomes

    def __str__(self) -> str:
        return f"{self.room}:{self.lines.start}: {self.was}  ->  {self.becomes}"


def mutants(room: str) -> list[Mutant]:
    """Return a module's mutants in line order, without equivalent mutants."""
    source = Path(room).read_text()
    statements = list(_statements(ast.parse(source)))
    seen = {_executed_part(source)}
    found = []
    tree = get_ast(source)
    parsed = pickle.dumps(tree)  # loading the pickle is faster than parsing the text
    for operator in OPERATORS:
        nodes = ast_nodes(tree)
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, ((first, _), (last, _)) in enumerate(places):
            try:
                mutated = (
                    MutationVisitor(occurrence, operator).walk(pickle.loads(parsed)).get_code()
                )
            except AttributeError:  # cosmic-ray does not support a dotted exception name
                continue
            runs = _executed_part(mutated)
            if runs is None or runs in seen:
                continue
            seen.add(runs)
            lines = min(
                (lines for lines in statements if first in lines and last in lines),
                key=len,
                default=range(first, last + 1),
            )
            found.append(Mutant(room, lines, source, mutated, *_change(source, mutated)))
    return sorted(found, key=lambda mutant: mutant.lines.start)


def _statements(tree: ast.AST) -> Iterator[range]:
    """Yield the lines of each statement; for a compound statement, the lines before its body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno or node.lineno
            yield range(node.lineno, end + 1)


def _change(source: str, mutated: str) -> tuple[str, str]:
    difference = list(difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0))[2:]
    was = [line[1:].strip() for line in difference if line.startswith("-")]
    becomes = [line[1:].strip() for line in difference if line.startswith("+")]
    return " ".join(was), " ".join(becomes)


class _WithoutTypes(ast.NodeTransformer):
    """A transformer that removes code without effect at run time."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        if ast.unparse(node.body[-1]) == "return None":  # the default at the end of a function
            node.body[-1] = ast.Pass()
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # These options of a dataclass or msgspec.Struct only restrict its use or its storage.
        decorators = [one for one in node.decorator_list if isinstance(one, ast.Call)]
        parts: list[ast.ClassDef | ast.Call] = [node, *filter(_is_dataclass, decorators)]
        for has_words in parts:
            words = [word for word in has_words.keywords if word.arg not in _FOR_WRITERS]
            has_words.keywords = words
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar"):
            return ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return ast.Pass()
        return self.generic_visit(node)


_FOR_WRITERS: Final = frozenset({"frozen", "kw_only", "slots", "gc"})


def _is_dataclass(decorator: ast.Call) -> bool:
    return ast.unparse(decorator.func) == "dataclass"


def _executed_part(source: str) -> str | None:
    try:
        return ast.dump(_WithoutTypes().visit(ast.parse(source)))
    except SyntaxError:
        return None
