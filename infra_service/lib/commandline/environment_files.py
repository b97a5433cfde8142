"""Read environment files in systemd's format, for ``manage.py --env-file``.

A shell interprets ``&``, ``;`` and ``$`` in values, so a shell that sources the file can lose a
setting and still report success. The grammar matches ``EnvironmentFile=`` in systemd.exec(5):
comments, single and double quotes, backslashes and continued lines, without substitution. Lines
that systemd would ignore with a warning are errors.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTION: Final = "--env-file"
_ENTRY: Final = re.compile(
    r"""[ \t\n\r]*
    (?: [#;] (?: \\[\s\S] | [^\\\n\r] )*
      | (?P<name> [^=\n\r]* ) =
        (?P<quoted> (?: [ \t]*+ (?: '[^']*' | "(?: \\[\s\S] | [^\\"] )*" ) )*+ ) [ \t]*+
        (?P<plain> (?!['"]) (?: \\[\s\S] | [^\\\n\r] )* )
      | \Z
    ) (?: [\n\r] | \Z )""",
    re.VERBOSE,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:\\[\s\S]|[^\\"])*)\"""")


class EnvironmentFileError(Exception):
    """An unreadable or invalid environment file. The message contains the position."""


def load_named(arguments: list[str]) -> list[str]:
    """Set the variables of each ``--env-file FILE``, and return the remaining arguments.

    Later files override earlier files, and the environment overrides all files.

    Raises:
        EnvironmentFileError: a file name is missing, a file is unreadable, or a line is invalid.
    """
    program, *rest = arguments
    values: dict[str, str] = {}
    while rest and rest[0].partition("=")[0] == OPTION:
        option, is_joined, file = rest.pop(0).partition("=")
        if not is_joined:
            file = rest.pop(0) if rest else ""
        if not file:
            raise EnvironmentFileError(f"{option} requires a file name")
        values.update(read(Path(file)))
    for name, value in values.items():
        os.environ.setdefault(name, value)
    return [program, *rest]


def read(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each variable.

    Raises:
        EnvironmentFileError: the file is unreadable or contains an invalid line.
    """
    try:
        text = file.read_bytes().decode()
    except OSError as error:
        raise EnvironmentFileError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise EnvironmentFileError(f"{file} is not UTF-8 text") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise EnvironmentFileError(f"{file}, line {line}: contains a NUL character")
    at = 0
    while at < len(text):
        found = _ENTRY.match(text, at)
        name = found["name"] if found else ""
        if found is None or (name is not None and not _NAME.fullmatch(name.rstrip())):
            start = at + len(text[at:]) - len(text[at:].lstrip())
            line = text.count("\n", 0, start) + 1
            raise EnvironmentFileError(f"{file}, line {line}: not NAME=VALUE")
        if name is not None:
            yield name.rstrip(), _unquote(found["quoted"]) + _unescape(found["plain"])
        at = found.end()


def _unquote(text: str) -> str:
    return "".join(
        re.sub(r'\\(?:\n|([\\"$`]))', lambda escape: escape[1] or "", double) if double else single
        for single, double in _QUOTED.findall(text)
    )


def _unescape(text: str) -> str:
    """Remove trailing white space, backslashes, and escaped line ends."""
    parts = re.findall(r"\\[\s\S]|[^\\]", text)
    while parts and parts[-1] in " \t":
        parts.pop()
    return "".join(part[1:].strip("\n\r") if len(part) > 1 else part for part in parts)
