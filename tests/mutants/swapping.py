"""A mutant in a process that has everything loaded: functions get the mutated code."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

_FUNCTION = 0x2  # inspect.CO_NEWLOCALS: neither a module's code nor a class's


class RanAtImportError(Exception):
    """The change is in code that ran when the module was imported."""


def functions_of(path: str) -> list[FunctionType]:
    """Return every function that the module's text made."""
    return [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path
    ]


def swap(path: str, old: str, new: str, functions: list[FunctionType]) -> None:
    """Give the functions whose code differs the new code.

    Raises:
        RanAtImportError: that cannot be done.
    """
    pairs = list(_pairs(compile(old, path, "exec"), compile(new, path, "exec")))
    swapped = 0
    for before, after in pairs:
        for function in functions:
            code = function.__code__
            if code.co_qualname == before.co_qualname and code == before:
                try:
                    function.__code__ = after
                except ValueError as error:
                    raise RanAtImportError from error
                swapped += 1
    if not swapped:
        raise RanAtImportError


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Return the codes of functions that differ, each with its mutant, from outside in."""
    inner_old = [const for const in old.co_consts if isinstance(const, CodeType)]
    inner_new = [const for const in new.co_consts if isinstance(const, CodeType)]
    if old.co_flags & _FUNCTION:
        yield old, new
    elif len(inner_old) != len(inner_new) or _own(old) != _own(new):
        raise RanAtImportError
    for before, after in zip(inner_old, inner_new, strict=False):
        if before != after:
            yield from _pairs(before, after)


def _own(code: CodeType) -> tuple[object, ...]:
    consts = [
        (const.co_name if isinstance(const, CodeType) else (type(const), const))
        for const in code.co_consts
    ]
    return code.co_code, code.co_names, consts
