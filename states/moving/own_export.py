"""An export that ``export_states`` of this service wrote, as a source of an import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, cast

from states.actions.destinations import Destination
from states.actions.importing import Origin
from states.moving import manifest
from states.moving.sources import (
    SourceError,
    SourceState,
    SourceVersion,
    SourceWorkspace,
    moment_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from states.moving.manifest import ExportedState, ExportedVersion

_NAME: Final = "export"


class Files(Protocol):
    """The location of an export's files."""

    def manifest(self) -> AbstractContextManager[Iterable[bytes]]:
        """Return the lines of the manifest.

        Raises:
            SourceError: the manifest cannot be read.
        """

    def read_file(self, path: str, limit: int) -> bytes:
        """Return the content of a file of limited size.

        Raises:
            TooLargeError, SourceError: the file exceeds the limit, or is unreadable.
        """


@dataclass(frozen=True, slots=True)
class _Exported(SourceState):
    """A state, and its versions in the manifest by their ids."""

    files: dict[str, ExportedVersion] = field(default_factory=dict)


class OwnExport:
    """The states of an export. An import keeps the number, time and author of each version.

    It also keeps the ids of components and environments, unless they are already in use.
    """

    #: The name does not depend on the location. The origin of each state contains its installation.
    name = _NAME

    def __init__(self, files: Files) -> None:
        self._files = files

    def states(self) -> Iterator[SourceState]:
        with self._files.manifest() as manifest_lines:
            lines = iter(manifest_lines)
            installation = manifest.header_of(lines).installation
            source = _NAME if installation is None else f"{_NAME}:{installation}"
            for line in lines:
                state = manifest.state_of(line)
                home = Destination.as_before(
                    state.component_id, state.environment_id, state.names, state.titles
                )
                files = {str(version.id): version for version in state.versions}
                origin = Origin(source, str(state.id), _former(state))
                record = state.workspace
                workspace = None if record is None else SourceWorkspace(record.name, record.tags)
                yield _Exported(
                    state.path, home=home, origin=origin, workspace=workspace, files=files
                )

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        files = cast("_Exported", state).files
        # Only the newest version has the path of the state.
        if state.key not in (version.path for version in files.values()):
            raise SourceError(
                "The newest version of the state is not in the export, because its document was "
                "unreadable. In the exported installation, restore the document from a backup, or "
                "restore an earlier version. Then export again."
            )
        try:
            found = [
                SourceVersion(
                    id=id_,
                    created_at=moment_of(version.created_at),
                    author=version.created_by,
                    size_bytes=version.size_bytes,
                    md5=version.md5,
                    number=version.number,
                )
                for id_, version in files.items()
            ]
        except OverflowError as error:
            raise SourceError(
                "The time of a version is not between the years 1 and 9999."
            ) from error
        return found if most is None else found[-most:]

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        return self._files.read_file(cast("_Exported", state).files[version.id].path, limit)


def _former(state: ExportedState) -> frozenset[str]:
    """Return the digests that older releases recorded, without the installation in the origin.

    Version ids are globally unique, so no other state has any of these digests.
    """
    return frozenset(
        Origin(_NAME, key).digest(str(version.id))
        for version in state.versions
        for key in (str(state.id), state.path)
    )
