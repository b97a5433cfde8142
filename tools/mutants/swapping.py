"""A mutant in a process that has already loaded its module.

Functions get the mutated code in place, wherever they are referenced. Values of module-level
statements are computed again, with their dependents, and replaced wherever they were imported.
"""

from __future__ import annotations
import __future__

import ast
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

_FUNCTION = 0x2  # inspect.CO_NEWLOCALS: neither a module's code nor a class's


class RanAtImportError(Exception):
    """The change is in code that ran at import, and cannot be applied afterwards."""


def functions_of(path: str) -> list[FunctionType]:
    """Return every function that the module's text defines."""
    gc.unfreeze()  # tests/conftest.py freezes loaded objects, which get_objects() then omits
    return [
        thing
        for thing in gc.get_objects()
        # isinstance() would dereference a weak proxy, whose object may be gone.
        if type(thing) is FunctionType and thing.__code__.co_filename == path
    ]


#: A function's code, its mutant, and whether it is in no other function.
_Codes = tuple[CodeType, CodeType, bool]


@dataclass
class Change:
    """A mutant as the changes to its loaded module."""

    path: str
    codes: list[_Codes]
    statements: list[ast.stmt]
    #: The original statements: a control for the effect of running them again.
    originals: list[ast.stmt]

    def make(self, functions: list[FunctionType]) -> None:
        """Change the module.

        Raises:
            RanAtImportError: the change is impossible.
        """
        for before, after, is_outermost in self.codes:
            held = [
                function
                for function in functions
                if function.__code__.co_qualname == before.co_qualname
                and function.__code__ == before
            ]
            if is_outermost and not held:
                raise RanAtImportError
            for function in held:
                try:
                    function.__code__ = after
                except ValueError as error:  # another number of closure variables
                    raise RanAtImportError from error
        run_again(self.path, self.statements)


def run_again(path: str, statements: list[ast.stmt]) -> None:
    """Run statements of a module again, and replace their values wherever they were imported."""
    module = next(m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == path)
    for statement in statements:
        names = _names_made(statement)
        before = {name: vars(module).get(name) for name in names}
        exec(_compiled(statement, path), vars(module))
        for other in list(sys.modules.values()):
            if isinstance(other, ModuleType):
                _replace(vars(other), before, vars(module))


def _replace(held: dict[str, Any], before: dict[str, Any], now: dict[str, Any]) -> None:
    for name, value in before.items():
        if name in held and held[name] is value:
            held[name] = now[name]


def change_of(path: str, old: str, new: str) -> Change:
    """Return the change that turns the loaded module into the mutant.

    Raises:
        RanAtImportError: the change is impossible.
    """
    olds, news = ast.parse(old, path).body, ast.parse(new, path).body
    if len(olds) != len(news):
        raise RanAtImportError
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(olds, news, strict=True)) if _differ(a, b)]
    again: list[int] = []
    names: set[str] = set()
    for place, before, after in pairs:
        if _runs_otherwise(before, after):
            if not _names_made(before):
                raise RanAtImportError
            again.append(place)
        names.update(_names_made(before))
    for place, statement in enumerate(olds):
        made = _names_made(statement)
        is_assigned = isinstance(statement, ast.Assign | ast.AnnAssign)
        if place not in again and is_assigned and made and names & _names_read(statement):
            again.append(place)
            names.update(made)
    again.sort()
    # Of the whole text: the compiler's flags depend on the module's imports.
    texts = [compile(text, path, "exec", dont_inherit=True) for text in (old, new)]
    codes = list(_codes(*texts, is_module=True))
    return Change(path, codes, [news[i] for i in again], [olds[i] for i in again])


def _differ(before: ast.stmt, after: ast.stmt) -> bool:
    return ast.dump(before) != ast.dump(after)


def _compiled(statement: ast.stmt, path: str = "") -> CodeType:
    """Compile a statement; its annotations are for type checkers, and need not run."""
    return compile(ast.Module([statement], []), path, "exec", __future__.annotations.compiler_flag)


def _runs_otherwise(before: ast.stmt, after: ast.stmt) -> bool:
    """Return whether the difference exceeds the bodies of functions."""
    codes = [_compiled(statement) for statement in (before, after)]
    try:
        list(_codes(*codes))
    except RanAtImportError:
        return True
    return False


def _names_made(statement: ast.stmt) -> set[str]:
    """Return the names that running the statement again would set; classes are excluded."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.AnnAssign):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return set()
    return {
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    }


def _names_read(statement: ast.stmt) -> set[str]:
    value = getattr(statement, "value", None)
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value else set()


def _codes(
    old: CodeType, new: CodeType, *, is_module: bool = False, is_outermost: bool = True
) -> Iterator[_Codes]:
    """Return the code objects of different functions, from the outside in.

    Raises:
        RanAtImportError: the surrounding code differs too, and is not a module's.
    """
    inner_old = [const for const in old.co_consts if isinstance(const, CodeType)]
    inner_new = [const for const in new.co_consts if isinstance(const, CodeType)]
    is_function = bool(old.co_flags & _FUNCTION)
    is_as_many = len(inner_old) == len(inner_new)
    if is_function:
        yield old, new, is_outermost
    elif not is_as_many or not (is_module or _own(old) == _own(new)):
        raise RanAtImportError
    for before, after in zip(inner_old, inner_new, strict=True) if is_as_many else ():
        if before != after:
            yield from _codes(before, after, is_outermost=is_outermost and not is_function)


def _own(code: CodeType) -> tuple[object, ...]:
    consts = [
        (const.co_name if isinstance(const, CodeType) else (type(const), const))
        for const in code.co_consts
    ]
    return code.co_code, code.co_names, consts
