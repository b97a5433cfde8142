"""Sources of an import: their interface, and the source of an address.

Each kind of source is a module beside this file, with a function that opens it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.actions.destinations import Destination
    from states.actions.importing import Origin


#: The maximum number of listed versions per state; a service may return any number.
MOST_VERSIONS: Final = 100_000


class SourceError(Exception):
    """A source refuses or fails; the message is a human-readable sentence.

    It contains no secrets, and the remedy if known.
    """


class TooLargeError(SourceError):
    """A document exceeds the service's limit."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        super().__init__(
            f"It has {size_bytes} bytes, and STATE_MAX_BYTES allows {limit}: raise it, for the "
            "service and this command."
        )


class ChangedError(SourceError):
    """A version differs from its listing."""

    def __init__(self) -> None:
        super().__init__("It changed while it was being read: run the command again.")


@dataclass(frozen=True, slots=True)
class SourceState:
    key: str  # a path, an object's key, a workspace's name: matched by map.toml
    locked_by: str | None = None  # the holder of the source's lock; None if unlocked or unknown
    home: Destination | None = None  # only of our own export, which needs no map
    origin: Origin | None = None  # only of our own export; else the source and the key


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of a state in a source, with the data that the source has."""

    id: str  # stable, never empty: by it a version is known again
    created_at: dt.datetime | None = None
    author: str = ""
    size_bytes: int | None = None
    md5: str | None = None  # in lower-case hex; compared with the content
    number: int | None = None  # only of our own export, which keeps numbers

    def check_digest(self, document: bytes) -> None:
        """Check that a document is this version, whose id is the SHA-256 of its content.

        Raises:
            ChangedError: the content differs.
        """
        if hashlib.sha256(document).hexdigest() != self.id:
            raise ChangedError


def moment_of(given: str | dt.datetime) -> dt.datetime:
    """Parse a source's time, to UTC; without an offset it is UTC.

    Raises:
        ValueError, OverflowError: not a time, or outside of the years 1 to 9999 in UTC.
    """
    moment = dt.datetime.fromisoformat(given) if isinstance(given, str) else given
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)


def text_of(value: object) -> str:
    """Return a text from a source, if a database can store it.

    Raises:
        TypeError, ValueError: it is not a string, or contains a NUL or an unpaired surrogate.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of text")
    if value != shown(value):
        raise ValueError(f"{value!a} is not text")
    return value


def shown(text: str) -> str:
    """Return a display text, such as an author's name, without unstorable characters."""
    return text.replace("\0", "?").encode(errors="replace").decode()


class Source(Protocol):
    """A source of states. The size of its results is independent of the number of states."""

    #: Such as "s3://bucket/prefix": the same in each run, and without a secret. By it, by a state's
    #: key and by a version's id a version is known again.
    name: str

    def states(self) -> Iterator[SourceState]:
        """Yield the states, always in the same order.

        Raises:
            SourceError: the source cannot be read any further.
        """

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the newest ``most`` versions of a state, or all of them, oldest first.

        Raises:
            SourceError: for this state; others continue.
        """

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        """Return a document of at most ``limit`` bytes, byte for byte.

        Raises:
            TooLargeError, SourceError: for this state; others continue.
        """


class Opener(Protocol):
    """A function that opens the source with this address."""

    def __call__(self, text: str) -> Source: ...


#: The opening function, as module and name, by the prefix of ``--from``.
#: Modules are imported on demand, because some need extra packages.
_OPENERS: Final[dict[str, tuple[str, str]]] = {
    "s3://": ("export_bucket", "open_folder"),
    "pg://": ("pg", "open_table"),
    "gitlab:": ("gitlab", "open_gitlab"),
    "tfe:": ("tfe", "open_organization"),
}
#: Without a known prefix, ``--from`` is a directory.
_DIRECTORY: Final = ("directory", "open_directory")


def open_source(text: str) -> Source:
    """Return the source in ``--from``.

    Raises:
        SourceError: the source does not exist.
    """
    found = (opener for prefix, opener in _OPENERS.items() if text.startswith(prefix))
    module, function = next(found, _DIRECTORY)
    opener = cast("Opener", getattr(import_module(f"states.moving.{module}"), function))
    return opener(text)
