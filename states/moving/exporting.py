"""Export states to plain files, with a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec
from django.utils import timezone

from apikeys import audit
from infra_service.lib.database.batches import in_batches
from states.document import sealing
from states.errors import DocumentDamaged
from states.keeping import reading
from states.keeping.attempts import Attempts
from states.keeping.verification import is_as_recorded
from states.models import Installation, State
from states.models.imported_versions import with_imported
from states.moving.manifest import (
    FORMAT,
    ExportedState,
    ExportedVersion,
    Header,
    path_of,
    path_of_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apikeys.actors import Actor
    from states.models import StateQuerySet, StateVersion


class Target(Protocol):
    """The destination of an export, which writes each file atomically."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file.

        Raises:
            SourceError: the file cannot be written.
        """

    def write_line(self, line: bytes) -> None:
        """Add a line to the manifest, which ``finish`` publishes.

        Raises:
            SourceError: the line cannot be written.
        """

    def finish(self) -> None:
        """Publish the manifest.

        Raises:
            SourceError: the manifest cannot be written.
        """

    def close(self) -> None:
        """Close all open files."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result for a state: the number of exported versions, and the problems with documents."""

    path: str
    versions: int
    is_locked: bool
    problems: list[str]


def exportable() -> StateQuerySet:
    """Return the states that have a document and are not deleted."""
    return State.objects.visible().filter(current_version__isnull=False)


def export(target: Target, *, history: bool, actor: Actor) -> Iterator[Exported]:
    """Export the current document or all versions of each state, and yield each result.

    Raises:
        SourceError: a file cannot be written.
        StorageUnavailable: the object store does not respond.
    """
    target.write_line(msgspec.json.encode(Header(FORMAT, timezone.now(), Installation.here())))
    attempts, paths = Attempts(), set[str]()
    for state in in_batches(exportable().select_related("component__application", "environment")):
        if path_of(state) in paths:
            # The state took over the slugs of a state that was renamed during the export. Without
            # a slug, its path consists of ids.
            state.component.slug = None
        paths.add(path_of(state))
        problems: list[str] = []
        versions = list(_written(target, state, attempts, problems, history=history))
        if versions:
            target.write_line(msgspec.json.encode(ExportedState.of(state, versions)))
            numbers = [version.number for version in versions]
            audit.authorize_and_record(actor, "state.export", state.pk, versions=numbers)
        yield Exported(path_of(state), len(versions), state.lock_id is not None, problems)
    target.finish()


def _written(
    target: Target, state: State, attempts: Attempts, problems: list[str], *, history: bool
) -> Iterator[ExportedVersion]:
    """Write the documents of a state, and yield the written versions, oldest first."""
    newest_first = with_imported(state.versions.order_by("-number"))
    # A later push is the current version. Retention could have removed the version in ``state``.
    wanted = list(newest_first if history else newest_first[:1])[::-1]
    for version in wanted:
        document, problem = attempts.run(partial(_document, version), version=str(version.pk))
        if problem:
            problems.append(f"version {version.number}: {problem}")
        if document is None:
            continue  # unreadable, or pruned during the export
        is_current = version is wanted[-1]
        path = path_of(state) if is_current else path_of_version(state, version.number)
        target.write(path, document)
        yield ExportedVersion.of(version, path)


def _document(version: StateVersion) -> bytes | None:
    stored, gzipped = reading.load(version.pk, version.state_id)
    if stored is None:
        return None
    document = sealing.decompress(gzipped)
    if not is_as_recorded(version, document):
        raise DocumentDamaged
    return document
