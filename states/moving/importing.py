"""Import the states of a source: make a plan, rehearse or execute it, and verify the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.conf import settings
from rest_framework.exceptions import APIException

from infra_service.lib.commandline.progress import counted
from states.actions.destinations import Destination, name_as_before
from states.actions.importing import (
    ImportRefusedError,
    OccupiedError,
    Offered,
    Origin,
    Rehearsal,
    finish_import,
    import_version,
    outstanding,
)
from states.actions.workspaces import keep_imported
from states.document import foreign
from states.document.uploads import Upload, demanding_utf8
from states.keeping import verification
from states.models import ImportedVersion, StateVersion
from states.moving.mapping import unmatched
from states.moving.plan import EMPTY, FAILED, IMPORT, IMPORTED, REFUSED, UNCHANGED, Plan, Row
from states.moving.sources import SourceError, TooLargeError, shown, text_of
from states.targets import StateTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apikeys.actors import Actor
    from states.moving.mapping import Map
    from states.moving.sources import Source, SourceState, SourceVersion

_LONGEST_AUTHOR: Final = 200
#: States whose versions are listed in a single query during verification.
_READ_TOGETHER: Final = 50


@dataclass(frozen=True, slots=True)
class Import:
    """An import from a source; ``most`` is the maximum number of versions per state, or None."""

    source: Source
    map: Map
    most: int | None
    actor: Actor

    def list_states(self, plan: Plan) -> Iterator[Row]:
        """Add the states of the source to the plan, and yield their rows. Import nothing.

        Raises:
            SourceError: the rest of the source is unreadable.
        """
        for state in self.source.states():
            if (row := self._row(state, plan)) is not None:
                plan.add(row)
                yield row

    def _row(self, state: SourceState, plan: Plan) -> Row | None:
        """Return the row of a state, or None to ignore the state."""
        if not _is_storable(state.key):
            return Row(ascii(state.key), result=REFUSED, reason="The name is not UTF-8. Rename it.")
        # A list can contain a state twice if it changes between two pages.
        if self.map.is_ignored(state.key) or plan.find(state.key) is not None:
            return None
        if state.problem:
            return Row(state.key, result=FAILED, reason=state.problem)
        return self._planned(state, plan)

    def _planned(self, state: SourceState, plan: Plan) -> Row:
        destination = self._destination(state)
        if destination is None:
            return Row(state.key, result=REFUSED, reason=unmatched(state.key))
        row = Row(state.key, str(destination), destination.path)
        if (other := plan.at(row.address)) is not None:
            # Only the operator knows which of the two states belongs at the address.
            plan.change(replace(other, result=REFUSED, reason=_same_address(row)))
            return replace(row, result=REFUSED, reason=_same_address(other))
        try:
            row = self._judged(row, state, destination)
        except OccupiedError as error:
            return replace(row, result=REFUSED, reason=str(error))
        except (SourceError, ImportRefusedError, APIException) as error:
            return replace(row, result=FAILED, reason=str(error))
        if row.result == IMPORT and state.locked_by is not None:
            return replace(row, result=FAILED, reason=_locked(state))
        return row

    def _judged(self, row: Row, state: SourceState, destination: Destination) -> Row:
        versions = self._versions(state)
        if not versions:
            return replace(row, result=EMPTY)
        rest = self._outstanding(state, destination, versions)
        limit = settings.STATE_MAX_BYTES
        sizes = [version.size_bytes for version in versions]
        row = replace(
            row,
            versions=len(versions),
            outstanding=len(rest),
            size_bytes=None if None in sizes else sum(filter(None, sizes)),
            result=IMPORT if rest else UNCHANGED,
        )
        for version in rest:
            if version.size_bytes is not None and version.size_bytes > limit:
                return replace(
                    row, result=FAILED, reason=str(TooLargeError(version.size_bytes, limit))
                )
        return row

    def rehearse(self, plan: Plan) -> Iterator[Row]:
        """Read and check every document to import, and yield the row of each state.

        Raises:
            SourceError: the rest of the source is unreadable.
        """
        return self._each(plan, (IMPORT,), self._rehearse)

    def execute_plan(self, plan: Plan) -> Iterator[Row]:
        """Import the states of the plan, and yield the row of each state with its result.

        Raises:
            SourceError: the rest of the source is unreadable.
        """
        return self._each(plan, (IMPORT, UNCHANGED), self._import)

    def _each(
        self, plan: Plan, results: tuple[str, ...], step: Callable[[Row, SourceState], Row]
    ) -> Iterator[Row]:
        for state in self.source.states():
            row = plan.find(state.key) if _is_storable(state.key) else None
            if row is None or row.result not in results:
                continue
            try:
                row = step(row, state)
            except (SourceError, ImportRefusedError, APIException) as error:
                row = replace(row, result=FAILED, reason=str(error))
            plan.change(row)
            yield row

    def _rehearse(self, row: Row, state: SourceState) -> Row:
        destination, rest = self._rest(row, state)
        rehearsal = Rehearsal(destination.find(self.actor))
        for version in rest:
            rehearsal.add(self._upload(state, version))
        return row

    def _versions(self, state: SourceState) -> list[SourceVersion]:
        versions = self.source.versions(state, self.most)
        if not all(_is_storable(version.id) for version in versions):
            raise SourceError("The source returned a version ID that cannot be stored as text.")
        return versions

    def _rest(self, row: Row, state: SourceState) -> tuple[Destination, list[SourceVersion]]:
        """Return the state's address and the versions to import, oldest first."""
        destination, versions = self._destination(state), self._versions(state)
        if destination is None or str(destination) != row.address or not versions:
            raise SourceError("The state changed after the plan was made. Run the command again.")
        rest = self._outstanding(state, destination, versions)
        if rest and state.locked_by is not None:
            raise SourceError(_locked(state))
        return destination, rest

    def _import(self, row: Row, state: SourceState) -> Row:
        destination, rest = self._rest(row, state)
        done = 0
        try:
            for version in rest:
                is_last = version is rest[-1]
                done += self._import_version(state, version, destination, is_last=is_last)
        except (SourceError, APIException) as error:
            if not done:
                raise
            raise ImportRefusedError(
                f"{error} {counted(done, 'version')} imported. The state stays "
                "locked until another run imports the remaining versions."
            ) from error
        found = finish_import(destination=destination, origin=self._origin(state), actor=self.actor)
        name_as_before(destination=destination, state_id=found.pk, actor=self.actor)
        if state.workspace is not None and destination.names is not None:
            keep_imported(
                target=StateTarget.of(found),
                names=destination.names,
                name=state.workspace.name,
                tags=state.workspace.tags,
                actor=self.actor,
            )
        result = IMPORTED if rest else UNCHANGED
        return replace(row, result=result, outstanding=0, imported=done, state_id=str(found.pk))

    def _upload(self, state: SourceState, version: SourceVersion) -> Upload:
        """Return a document of the source, with the same checks as for a push."""
        document = self.source.read(state, version, settings.STATE_MAX_BYTES)
        if len(document) > settings.STATE_MAX_BYTES:
            raise TooLargeError(len(document), settings.STATE_MAX_BYTES)
        with demanding_utf8():
            document.decode()
        upload = Upload.of(document)
        if not upload.head.is_state and foreign.describe(document) == foreign.BACKEND:
            raise SourceError(f"The file is not a state, but {foreign.BACKEND}.")
        announced = (version.md5 or upload.md5, version.size_bytes or upload.size_bytes)
        if (upload.md5, upload.size_bytes) != announced:
            raise SourceError(
                "The document does not match the size or digest that the source reports."
            )
        return upload

    def _import_version(
        self,
        state: SourceState,
        version: SourceVersion,
        destination: Destination,
        *,
        is_last: bool,
    ) -> bool:
        origin = self._origin(state)
        imported = ImportedVersion(
            source=origin.source,
            key=origin.key,
            source_version=version.id,
            digest=origin.digest(version.id),
            created_at=version.created_at,
            created_by=shown(version.author)[:_LONGEST_AUTHOR],
        )
        return import_version(
            destination=destination,
            origin=origin,
            upload=self._upload(state, version),
            imported=imported,
            number=version.number,
            is_last=is_last,
            actor=self.actor,
        )

    def _outstanding(
        self, state: SourceState, destination: Destination, versions: list[SourceVersion]
    ) -> list[SourceVersion]:
        rest = outstanding(
            destination=destination,
            origin=self._origin(state),
            versions=[Offered(version.id, version.number) for version in versions],
            actor=self.actor,
        )
        return versions[len(versions) - len(rest) :]

    def _origin(self, state: SourceState) -> Origin:
        return state.origin or Origin(self.source.name, state.key)

    def _destination(self, state: SourceState) -> Destination | None:
        names = self.map.names(state.key)
        return state.home if names is None else Destination.named(names)


def read_back(plan: Plan) -> Iterator[Row]:
    """Verify every imported version, and yield the row of each state.

    The result is ``FAILED`` if a stored document differs from the imported bytes.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    imported = plan.rows(IMPORTED, UNCHANGED)
    while rows := list(islice(imported, _READ_TOGETHER)):
        states = [row.state_id for row in rows]
        versions = StateVersion.objects.filter(state_id__in=states, imported__isnull=False)
        problems: dict[str, str] = {}
        for found in verification.verify(versions):
            if found.problem is not None:
                reason = f"Version {found.version.number}: {found.problem}"
                problems.setdefault(str(found.version.state_id), reason)
        for row in rows:
            reason = problems.get(row.state_id, "")
            yield replace(row, result=FAILED, reason=reason) if reason else row


def _is_storable(text: str) -> bool:
    try:
        return bool(text_of(text))
    except ValueError:
        return False


def _same_address(other: Row) -> str:
    return f"{other.key} has the same address."


def _locked(state: SourceState) -> str:
    return (
        f"The state is locked in the source by {shown(str(state.locked_by))}. Wait until the lock "
        "is released, or release it in the source."
    )
