"""Subclasses of Thread replace none of its private attributes."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installation import ROOT

_ROOMS = ("infra_service", "apikeys", "states", "workloads", "tests", "tools")
_PRIVATE = {name for name in dir(threading.Thread(target=print)) if name.startswith("_")} - {
    name for name in dir(threading.Thread) if name.startswith("__")
}


def names(thread: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes that a class stores, and its methods."""
    for node in ast.walk(thread):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.FunctionDef):
            yield node.name


def threads(path: Path) -> Iterator[ast.ClassDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and "threading.Thread" in map(ast.unparse, node.bases):
            yield node


@pytest.mark.slow
def test_threads_keep_the_private_attributes_of_thread() -> None:
    """`join` calls `_stop`: a class that replaces it raises TypeError when it ends."""
    files = [path for room in _ROOMS for path in (ROOT / room).rglob("*.py")]
    found = [(path, thread) for path in files for thread in threads(path)]
    replaced = {
        f"{path}: {thread.name}.{name}"
        for path, thread in found
        for name in {*names(thread)} & _PRIVATE
    }

    assert len(found) > 5
    assert not replaced
