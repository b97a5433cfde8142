"""Module versions from ``.terraform/modules/modules.json``.

Credentials are removed from sources, for example from the URLs of Git and S3.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from filterlang.versions import sort_key
from states.errors import InvalidFile

NAME: Final = "modules.json"

#: Maximum bytes of a text, because sources are indexed.
_MOST_BYTES: Final = 1_000
_USER: Final = re.compile(r"(?<=://)[^/\s]*@")
_REF: Final = re.compile(r"(?<![^&])ref=[^&]+")


class Module(NamedTuple):
    """A module call: its path in the configuration, its source, and its version or ""."""

    key: str
    source: str
    version: str


def parse(manifest: Any) -> list[Module]:
    """Return the module calls in a manifest, given as text or parsed JSON.

    Local modules have no version.

    Raises:
        InvalidFile: the value is not a manifest.
    """
    if isinstance(manifest, str):
        manifest = _decoded(manifest)
    entries = manifest.get("Modules") if isinstance(manifest, dict) else None
    if not isinstance(entries, list):
        raise InvalidFile(NAME, "expected an object with the list Modules")
    modules = [_module(entry, position) for position, entry in enumerate(entries)]
    # The root module has an empty key.
    return sorted(module for module in modules if module.key)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidFile(NAME, error.msg, error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise InvalidFile(NAME, "nested too deeply, or a number has too many digits") from error


def _module(entry: Any, position: int) -> Module:
    if not isinstance(entry, dict):
        raise InvalidFile(NAME, f"Modules[{position}] is not an object")
    key, source, version = (_text(entry, name, position) for name in ("Key", "Source", "Version"))
    if version and sort_key(version) is None:
        raise InvalidFile(NAME, f"Modules[{position}].Version is not a version, such as 5.1.0")
    return Module(key, without_credentials(source), version)


def _text(entry: dict[str, Any], name: str, position: int) -> str:
    value = entry.get(name, "")
    if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
        raise InvalidFile(NAME, f"Modules[{position}].{name} is not a string")
    if len(value.encode()) > _MOST_BYTES:
        raise InvalidFile(NAME, f"Modules[{position}].{name} has over {_MOST_BYTES} bytes")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_credentials(source: str) -> str:
    """Return a source without user, password and parameters other than ``ref``."""
    address, _, query = source.partition("?")
    # Not decoded: a text such as ``%00`` would become a character that PostgreSQL cannot store.
    ref = _REF.search(query)
    return _USER.sub("", address) + (f"?{ref[0]}" if ref else "")
