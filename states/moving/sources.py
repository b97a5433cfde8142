"""Sources of an import: their interface, and the function that opens the source in ``--from``.

Each kind of source has its own module in this package, with a function that opens the source.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from states.actions.destinations import Destination
    from states.actions.importing import Origin


#: The maximum number of listed versions per state. A source could return any number.
MOST_VERSIONS: Final = 100_000


class SourceError(Exception):
    """An error of a source. The message is a sentence for the user.

    The message contains a remedy if known, but no secrets.
    """


class TooLargeError(SourceError):
    """A document that exceeds the limit of the service."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        super().__init__(
            f"The document has {size_bytes} bytes, but STATE_MAX_BYTES allows {limit}. Increase "
            "STATE_MAX_BYTES for the service and this command."
        )


class ChangedError(SourceError):
    """A version that changed after it was listed."""

    def __init__(self) -> None:
        super().__init__("The state changed while it was being read. Run the command again.")


@dataclass(frozen=True, slots=True)
class SourceWorkspace:
    """A workspace of a remote backend. The name is None if the state's address determines it."""

    name: str | None
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class SourceState:
    key: str  # a path, an object key or a workspace name, which map.toml maps to a state
    locked_by: str | None = None  # the owner of the source's lock; None if unlocked or unknown
    home: Destination | None = None  # the address in an export of this service, if no map matches
    origin: Origin | None = None  # set only for an export of this service
    workspace: SourceWorkspace | None = None  # the workspace of a remote backend
    problem: str = ""  # the reason why the states below the key cannot be listed


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of a state in a source, with the metadata that the source provides."""

    id: str  # stable and never empty: the next run recognizes the version by its id
    created_at: dt.datetime | None = None
    author: str = ""
    size_bytes: int | None = None
    md5: str | None = None  # in lower-case hexadecimal; the import compares it with the content
    number: int | None = None  # set only for an export of this service, which keeps its numbers

    def check_digest(self, document: bytes) -> None:
        """Check a document against the id of this version, which is the SHA-256 of its content.

        Raises:
            ChangedError: the content differs.
        """
        if hashlib.sha256(document).hexdigest() != self.id:
            raise ChangedError


def moment_of(given: str | dt.datetime) -> dt.datetime:
    """Parse the time of a source, and convert it to UTC. A time without an offset is in UTC.

    Raises:
        ValueError, OverflowError: the text is not a time, or is not in the years 1 to 9999 in UTC.
    """
    moment = dt.datetime.fromisoformat(given) if isinstance(given, str) else given
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)


def text_of(value: object) -> str:
    """Return a text from a source after checking that a database can store it.

    Raises:
        TypeError, ValueError: the value is not a string, or has a NUL or an unpaired surrogate.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of text")
    if value != shown(value):
        raise ValueError(f"{value!a} is not text")
    return value


def shown(text: str) -> str:
    """Return a display text, such as an author's name, with ``?`` for unstorable characters."""
    return text.replace("\0", "?").encode(errors="replace").decode()


class Source(Protocol):
    """A source of states. Its methods use little memory, even for a large number of states."""

    #: The name of the source, such as "s3://bucket/prefix". It is the same in each run, and has no
    #: secrets. The name, the state's key and the version's id identify an imported version.
    name: str

    def states(self) -> Iterator[SourceState]:
        """Yield the states, always in the same order.

        Raises:
            SourceError: the rest of the source is unreadable.
        """

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the newest ``most`` versions of a state, or all of them, oldest first.

        Raises:
            SourceError: the state is unreadable. The import continues with the next state.
        """

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        """Return a document of at most ``limit`` bytes, byte for byte.

        Raises:
            TooLargeError, SourceError: the document is too large or unreadable. The import
                continues with the next state.
        """


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
    """Open the source in ``--from``.

    Raises:
        SourceError: the address is invalid, or the source does not exist.
    """
    found = (opener for prefix, opener in _OPENERS.items() if text.startswith(prefix))
    module, function = next(found, _DIRECTORY)
    scheme, separator, _ = text.partition("://")
    if separator and (module, function) == _DIRECTORY:
        # The rest can contain a password, as in the conn_str of Terraform's pg backend.
        raise SourceError(
            f"{scheme}:// is not a source. Sources are a directory, s3://bucket/prefix, "
            "pg://user@host/database, gitlab:group/project and tfe:organization."
        )
    open_: Callable[[str], Source] = getattr(import_module(f"states.moving.{module}"), function)
    return open_(text)
