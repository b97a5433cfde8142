"""Turn a loaded module into a mutant, without importing the module again.

Functions get the mutated code in place, so all references to them use it. Changed module-level
statements and the assignments that depend on them run again, and the new values replace the old
values in all modules that imported them.
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

_FUNCTION = 0x2  # inspect.CO_NEWLOCALS: only the code of a function has this flag


class RanAtImportError(Exception):
    """The changed code already ran during the import, so the change has no effect."""


def functions_of(path: str) -> list[FunctionType]:
    """Return every function that the module's source file defines."""
    gc.unfreeze()  # get_objects() would omit the objects that tests/conftest.py has frozen
    return [
        thing
        for thing in gc.get_objects()
        # isinstance() would dereference a weak proxy, and its object may no longer exist.
        if type(thing) is FunctionType and thing.__code__.co_filename == path
    ]


#: A function's code, the mutated code, and whether the function is outside all other functions.
_Codes = tuple[CodeType, CodeType, bool]


@dataclass
class Change:
    """The changes that turn a loaded module into a mutant."""

    path: str
    codes: list[_Codes]
    statements: list[ast.stmt]
    #: The original statements, which run again as a control.
    originals: list[ast.stmt]

    def make(self, functions: list[FunctionType]) -> None:
        """Apply the changes to the module.

        Raises:
            RanAtImportError: the change cannot be applied.
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
                except ValueError as error:  # the number of closure variables differs
                    raise RanAtImportError from error
        run_again(self.path, self.statements)


def run_again(path: str, statements: list[ast.stmt]) -> None:
    """Run a module's statements again, and replace their values in all modules."""
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
        RanAtImportError: the change cannot be applied.
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
    # Compile the whole text, because the compiler's flags depend on the module's imports.
    texts = [compile(text, path, "exec", dont_inherit=True) for text in (old, new)]
    codes = list(_codes(*texts, is_module=True))
    return Change(path, codes, [news[i] for i in again], [olds[i] for i in again])


def _differ(before: ast.stmt, after: ast.stmt) -> bool:
    return ast.dump(before) != ast.dump(after)


def _compiled(statement: ast.stmt, path: str = "") -> CodeType:
    """Compile a statement, without code that evaluates its annotations."""
    return compile(ast.Module([statement], []), path, "exec", __future__.annotations.compiler_flag)


def _runs_otherwise(before: ast.stmt, after: ast.stmt) -> bool:
    """Return whether the statements also differ outside of function bodies."""
    codes = [_compiled(statement) for statement in (before, after)]
    try:
        list(_codes(*codes))
    except RanAtImportError:
        return True
    return False


def _names_made(statement: ast.stmt) -> set[str]:
    """Return the names that running the statement again would set, except classes."""
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
    """Yield the code objects of functions that differ, outer functions first.

    Raises:
        RanAtImportError: the code of a class differs too.
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
