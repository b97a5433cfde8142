"""The files of ``export_states``: their names, and the lines of ``manifest.jsonl``.

The first line of the manifest is a ``Header``. Each of the other lines is an ``ExportedState``. The
manifest is published last, so an export without a manifest is incomplete.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec

from states import addresses
from states.moving.sources import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from states.models import State, StateVersion

T = TypeVar("T")

#: Half of the range of the database column, so that later versions also have numbers.
Number = Annotated[int, msgspec.Meta(ge=1, le=2**30)]
#: The range of the database column.
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
PlainPath = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")]
Title = Annotated[str, msgspec.Meta(max_length=200, pattern=r"\A[^\x00]*\Z")]
TagValue = Annotated[str, msgspec.Meta(max_length=256, pattern=r"\A[^\x00]*\Z")]

MANIFEST: Final = "manifest.jsonl"
#: The name of the manifest while the export is incomplete.
UNFINISHED: Final = f"{MANIFEST}.partial"
FORMAT: Final = 2
#: The format of older releases, which have no installation id.
_WITHOUT_INSTALLATION: Final = 1


class UnfinishedError(SourceError):
    """An incomplete export, which cannot be imported."""

    def __init__(self, place: str) -> None:
        super().__init__(f"The export in {place} is incomplete. Run export_states again.")


class OccupiedError(SourceError):
    """A destination with other files, to which no export can be written."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} is not empty. Choose a new directory or folder.")


class Header(msgspec.Struct, frozen=True):
    """The first line of the manifest."""

    infra_service_export: int
    exported_at: dt.datetime
    installation: uuid.UUID | None = None


class ExportedVersion(msgspec.Struct, frozen=True):
    """A version and the file with its document.

    The time and the author of an imported version come from the source of the import.
    """

    id: uuid.UUID
    number: Number
    serial: int
    lineage: str | None
    md5: str
    size_bytes: Size
    created_at: dt.datetime
    created_by: str
    path: PlainPath

    @classmethod
    def of(cls, version: StateVersion, path: str) -> ExportedVersion:
        """Return the entry of a version, which must come from ``with_imported``."""
        return cls(
            id=version.pk,
            number=version.number,
            serial=version.serial,
            lineage=version.lineage,
            md5=version.md5,
            size_bytes=version.size_bytes,
            created_at=version.imported_created_at or version.created_at,
            created_by=(
                version.created_by
                if version.imported_created_by is None
                else version.imported_created_by
            ),
            path=path,
        )


class ExportedWorkspace(msgspec.Struct, frozen=True):
    """The record of a workspace in the remote backend: its tags, and its stored name, if any."""

    tags: dict[str, TagValue]
    name: str | None = None


class ExportedState(msgspec.Struct, frozen=True):
    """A state: ids, slugs and names of its catalogue entries, and its versions, oldest first."""

    id: uuid.UUID
    application_id: uuid.UUID | None
    component_id: uuid.UUID
    environment_id: uuid.UUID
    application: str | None
    component: str | None
    environment: str | None
    application_name: Title | None
    component_name: Title
    environment_name: Title
    path: str
    versions: list[ExportedVersion]
    workspace: ExportedWorkspace | None = None

    @classmethod
    def of(cls, state: State, versions: list[ExportedVersion]) -> ExportedState:
        application = state.component.application
        return cls(
            id=state.pk,
            application_id=application.pk if application else None,
            component_id=state.component_id,
            environment_id=state.environment_id,
            application=application.slug if application else None,
            component=state.component.slug,
            environment=state.environment.slug,
            application_name=application.name if application else None,
            component_name=state.component.name,
            environment_name=state.environment.name,
            path=path_of(state),
            versions=versions,
            workspace=None if state.workspace is None else ExportedWorkspace(**state.workspace),
        )

    @property
    def names(self) -> addresses.Names | None:
        """Return the slugs of the state's address, or None if a slug is missing.

        Raises:
            SourceError: a name is not a slug.
        """
        application_is_named = self.application is not None or self.application_id is None
        if self.component is None or self.environment is None or not application_is_named:
            return None
        names = addresses.Names(self.component, self.environment, self.application)
        if not names.is_valid:
            raise SourceError(f"{MANIFEST} is damaged: a name in {names!a} is not a slug.")
        return names

    @property
    def titles(self) -> addresses.Names:
        """Return the display names of the catalogue entries."""
        return addresses.Names(self.component_name, self.environment_name, self.application_name)


def path_of(state: State) -> str:
    """Return the file path of a state's current document, which consists of slugs or ids."""
    names = addresses.names_of(state)
    place = f"{state.component_id}/{state.environment_id}" if names is None else names.path
    return f"{place}.tfstate"


def path_of_version(state: State, number: int) -> str:
    """Return the file path of an older document. It is unique, because slugs contain no dots."""
    return f"{path_of(state).removesuffix('.tfstate')}.history/{number}.tfstate"


def header_of(lines: Iterable[bytes]) -> Header:
    """Parse the first line.

    Raises:
        SourceError: the line is damaged, or the format is not supported.
    """
    header = _decoded(next(iter(lines), b""), Header)
    format_ = header.infra_service_export
    if format_ not in (_WITHOUT_INSTALLATION, FORMAT):
        raise SourceError(f"{MANIFEST} has format {format_}, not {FORMAT}.")
    if format_ == FORMAT and header.installation is None:
        raise SourceError(f"{MANIFEST} is damaged: its first line does not name an installation.")
    return header


def state_of(line: bytes) -> ExportedState:
    """Parse a line after the first line.

    Raises:
        SourceError: the line does not describe a state.
    """
    return _decoded(line, ExportedState)


def _decoded(line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{MANIFEST} is damaged: {error}") from error
