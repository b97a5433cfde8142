"""Sources of an import: their interface, and the source of an address.

Each kind of source is a module beside this one, with a function that opens it.
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


#: Versions of one state that are listed; a service may name any number of them.
MOST_VERSIONS: Final = 100_000


class SourceError(Exception):
    """A source does not give what it is asked for; the message is a sentence for people.

    It holds no secret, and says what to do if that is known.
    """


class TooLargeError(SourceError):
    """A document is larger than the service takes."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        super().__init__(
            f"It has {size_bytes} bytes, and STATE_MAX_BYTES allows {limit}: raise it, for the "
            "service and this command."
        )


class ChangedError(SourceError):
    """A version is not any more what it was when it was listed."""

    def __init__(self) -> None:
        super().__init__("It has changed while it was read: run the command again.")


@dataclass(frozen=True, slots=True)
class SourceState:
    key: str  # a path, an object's key, the name of a workspace: what map.toml matches
    locked_by: str | None = None  # who holds the source's lock; None when it is free or unknown
    home: Destination | None = None  # only of our own export, which needs no map
    origin: Origin | None = None  # only of our own export; else the source and the key


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of a state of a source; the source tells what it knows."""

    id: str  # stable, never empty: by it a version is known again
    created_at: dt.datetime | None = None
    author: str = ""
    size_bytes: int | None = None
    md5: str | None = None  # in lower-case hex; what is read is compared with it
    number: int | None = None  # only of our own export, which keeps numbers

    def check_digest(self, document: bytes) -> None:
        """See that a document is this version, whose id is the SHA-256 of what it was.

        Raises:
            ChangedError: it is another.
        """
        if hashlib.sha256(document).hexdigest() != self.id:
            raise ChangedError


def moment_of(told: str | dt.datetime) -> dt.datetime:
    """Return a time that a source names, in UTC; without an offset it is in UTC.

    Raises:
        ValueError, OverflowError: it is no time, or not one between the years 1 and 9999 in UTC.
    """
    moment = dt.datetime.fromisoformat(told) if isinstance(told, str) else told
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)


def text_of(value: object) -> str:
    """Return a text that a source names, if a database can store it.

    Raises:
        TypeError, ValueError: it is no text, or has a NUL or half of a surrogate pair in it.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in the place of text")
    if value != shown(value):
        raise ValueError(f"{value!a} is not text")
    return value


def shown(text: str) -> str:
    """Return a text for people, such as the name of an author, without what cannot be stored."""
    return text.replace("\0", "?").encode(errors="replace").decode()


class Source(Protocol):
    """A place with states. Nothing that it returns grows with the number of states."""

    #: Such as "s3://bucket/prefix": the same in each run, and without a secret. By it, by a state's
    #: key and by a version's id a version is known again.
    name: str

    def states(self) -> Iterator[SourceState]:
        """Yield the states, always in the same order.

        Raises:
            SourceError: nothing more can be had of the source.
        """

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the newest ``most`` versions of a state, or all of them, the oldest first.

        Raises:
            SourceError: of this state; others go on.
        """

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        """Return a document, byte for byte, if it has ``limit`` bytes at most.

        Raises:
            TooLargeError, SourceError: of this state; others go on.
        """


class Opener(Protocol):
    """Opens the source that a text names."""

    def __call__(self, text: str) -> Source: ...


#: By how ``--from`` begins: the module here, and its function that opens the source. A module is
#: loaded when it is asked for, because some need packages that others do without.
_OPENERS: Final[dict[str, tuple[str, str]]] = {
    "s3://": ("export_bucket", "open_folder"),
    "pg://": ("pg", "open_table"),
    "gitlab:": ("gitlab", "open_gitlab"),
    "tfe:": ("tfe", "open_organization"),
}
#: What has no other beginning is a directory.
_DIRECTORY: Final = ("directory", "open_directory")


def open_source(text: str) -> Source:
    """Return the source that ``--from`` names.

    Raises:
        SourceError: there is none.
    """
    found = (opener for prefix, opener in _OPENERS.items() if text.startswith(prefix))
    module, function = next(found, _DIRECTORY)
    opener = cast("Opener", getattr(import_module(f"states.moving.{module}"), function))
    return opener(text)
