"""Stored documents: from the row or the object store, verified, and recorded in the audit log."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import (
    BigIntegerField,
    BinaryField,
    Case,
    F,
    PositiveIntegerField,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Length
from django.db.models.lookups import LessThanOrEqual
from structlog.contextvars import bind_contextvars

from apikeys import audit
from infra_service.lib.api import memory
from infra_service.lib.database import citus, replica
from infra_service.lib.database.compiled import CompiledQuery, Parameter
from infra_service.lib.database.failures import DatabaseUnavailable
from infra_service.lib.encryption import Encrypted
from states import addresses
from states.document import sealing
from states.document.sealing import Place
from states.errors import DocumentDamaged, DocumentUnreadable, StateNotFound, VersionNotFound
from states.keeping import storage
from states.keeping.faults import StorageFaults
from states.models import State, StateVersion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from infra_service.lib.database.compiled import Prefetch
    from states.models import StateQuerySet


class Stored(NamedTuple):
    """The location of a version's document: the row, or a name in the object store."""

    state_id: uuid.UUID
    version_id: uuid.UUID
    number: int
    document: bytes | None
    encryption_key: str
    object_name: str

    @property
    def place(self) -> Place:
        """The binding of the encrypted document."""
        return Place(self.state_id, self.version_id, self.number)


#: The last columns of a current document's row, for the check of bindings.
PLACE: Final = ("component_id", "environment_id", "application_id")
#: The ids of a version and its state; Citus finds the server by the state.
_KEY: Final = {name: Parameter(name, UUIDField()) for name in ("pk", "state_id")}
#: Replaces the length of the document while its version has not been read.
_UNREAD: Final = Value(None, output_field=BigIntegerField())
#: Seconds between attempts to read the version of a state that was just pushed.
_PAUSES: Final = (0.02, 0.05, 0.1, 0.3)
#: Where the length of the document is in the row.
_LENGTH: Final = len(Stored._fields)
_COLUMNS: Final = ("id", "number", "document", "encryption_key", "object_name")


def _found(
    versions: QuerySet[Any, Any], state_id: str, prefix: str = "", *more: str
) -> QuerySet[Any, Any]:
    """Return the columns of ``Stored``, but of a large document only its length.

    Memory for a large document is reserved before it is read; a small one needs a single query.
    """
    length = Length(f"{prefix}document")
    is_small = When(LessThanOrEqual(length, memory.FREE), then=f"{prefix}document")
    return versions.values_list(
        state_id,
        *(Case(is_small) if name == "document" else F(f"{prefix}{name}") for name in _COLUMNS),
        Coalesce(length, F(f"{prefix}size_bytes"), output_field=BigIntegerField()),
        *more,
    )


def _current() -> QuerySet[State, Any]:
    key = (Parameter("component_id", UUIDField()), Parameter("environment_id", UUIDField()))
    return _current_of(State.objects.of(*key))


def _current_at(*, with_application: bool) -> QuerySet[State, Any]:
    names = addresses.parameters(with_application=with_application)
    return _current_of(addresses.states_at(names))


def _current_of(states: StateQuerySet) -> QuerySet[State, Any]:
    """Return the columns of ``Stored`` of the current version.

    On Citus, states and versions are on different servers, and a statement may see a new state
    before its version. The columns of the version are null, and ``_current_row`` reads them.
    """
    pushed = states.visible().filter(current_version__isnull=False)
    if not citus.is_used():
        return _found(pushed, "id", "current_version__", *PLACE)
    nothing = Value(None, output_field=BinaryField())
    columns = ("id", "current_version_id", "version_number", nothing, Value(""), Value(""))
    return pushed.values_list(*columns, _UNREAD, *PLACE)


def _version() -> QuerySet[StateVersion, Any]:
    state_id = Parameter("state_id", UUIDField())
    number = Parameter("number", PositiveIntegerField())
    return _found(StateVersion.objects.filter(state_id=state_id, number=number), "state_id")


def _by_id() -> QuerySet[StateVersion, Any]:
    return _found(StateVersion.objects.filter(**_KEY), "state_id")


def _placed() -> QuerySet[StateVersion, Any]:
    versions = StateVersion.objects.filter(pk=Parameter("pk", UUIDField()), state__deleted_at=None)
    places = (f"state__{name}" for name in ("current_version_id", *PLACE))
    return _found(versions, "state_id", "", *places)


def _whole() -> QuerySet[StateVersion, Any]:
    return StateVersion.objects.filter(**_KEY).values_list("state_id", *_COLUMNS)


CURRENT: Final = CompiledQuery(_current)
#: The same by names, for addresses without and with an application.
CURRENT_AT: Final = {
    flag: CompiledQuery(partial(_current_at, with_application=flag)) for flag in (False, True)
}
#: A version of a visible state, by its id; the id of the current version precedes the place.
PLACED_VERSION: Final = CompiledQuery(_placed)
_VERSION: Final = CompiledQuery(_version)
_BY_ID: Final = CompiledQuery(_by_id)
_WHOLE: Final = CompiledQuery(_whole)
#: Bytes that reading holds beside each of the document: as the database sent it, and encrypted.
_BESIDE: Final = 2


def read_current(*, current: Prefetch[Any], actor: Actor, **details: Any) -> bytes:
    """Return the document that a prefetch of ``CURRENT`` or ``PLACED_VERSION`` finds, gzip'd.

    ``details`` are recorded in the audit log.

    Raises:
        StateNotFound: the state has no document.
        DocumentDamaged: the document differs from the pushed one.
        DocumentMissing, StorageInconsistent: the object is missing, or the store returns other
            bytes than it recorded.
        StorageUnavailable: the object store does not respond.
    """
    stored, gzipped = _unsealed(partial(_current_row, current))
    if stored is None:
        raise StateNotFound
    audit.authorize_and_record(
        actor, "state.read", stored.state_id, version=stored.number, **details
    )
    return gzipped


def read_version(
    *,
    state_id: uuid.UUID,
    number: int,
    actor: Actor,
    from_replica: bool = False,
    **details: Any,
) -> bytes:
    """Return a version's document, gzip'd; ``details`` are recorded in the audit log.

    Raises:
        VersionNotFound: the version does not exist, or was pruned.
        DocumentUnreadable, StorageUnavailable: as for the current document.
    """
    if from_replica:
        stored, gzipped = replica.read(
            lambda alias: find_version(state_id=state_id, number=number, using=alias)
        )
    else:
        stored, gzipped = find_version(state_id=state_id, number=number)
    if stored is None:
        raise VersionNotFound
    audit.authorize_and_record(actor, "state.read", state_id, version=number, **details)
    return gzipped


def find_version(
    *, state_id: uuid.UUID, number: int, using: str = DEFAULT_DB_ALIAS
) -> tuple[Stored | None, bytes]:
    """Return a version's location and gzip'd document, for use within the service.

    Raises:
        DocumentUnreadable, StorageUnavailable: as for the current document.
    """
    return _unsealed(lambda: _VERSION.row(using=using, state_id=state_id, number=number), using)


def find_small(*, state_id: uuid.UUID, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the gzip'd documents of these versions by number, in a single query.

    The result excludes large and unreadable documents, and documents in the object store.
    """
    versions = StateVersion.objects.filter(state_id=state_id, number__in=numbers, object_name="")
    found = {}
    for row in _found(versions, "state_id"):
        stored = Stored(*row[:_LENGTH])
        if stored.document is not None:
            with contextlib.suppress(DocumentUnreadable):
                sealing.check_key(stored.encryption_key)
                found[stored.number] = _unseal(stored, stored.document)
    return found


def _current_row(current: Prefetch[Any]) -> Sequence[Any] | None:
    """Return the row of ``Stored``; read the version separately if the row does not contain it.

    Raises:
        DatabaseUnavailable: the version is not visible yet; see ``docs/adr/0083``.
    """
    row = current.row()
    for pause in (*_PAUSES, None):
        if row is None or row[_LENGTH] is not None:
            return row
        version = _BY_ID.row(pk=row[1], state_id=row[0])
        if version is not None:
            return (*version, *row[_LENGTH + 1 :])
        if pause is not None:
            time.sleep(pause)
            row = current.row()
    raise DatabaseUnavailable


def load(version_id: uuid.UUID, state_id: uuid.UUID) -> tuple[Stored | None, bytes]:
    """Return a version's location and gzip'd document, for a command; None if it was pruned.

    Raises:
        DocumentUnreadable, StorageUnavailable: as for the current document.
    """
    return _unsealed(lambda: _BY_ID.row(pk=version_id, state_id=state_id))


def _unsealed(
    find: Callable[[], Sequence[Any] | None], using: str = DEFAULT_DB_ALIAS
) -> tuple[Stored | None, bytes]:
    """Return the location and the gzip'd document of the row that ``find`` returns.

    A missing object may have been moved, re-encrypted or pruned meanwhile: the row is read again.

    Raises:
        DocumentDamaged: it does not decrypt, although the store returns its recorded content.
        DocumentKeyMissing: its key is not configured.
        DocumentMissing, StorageInconsistent: the fault persists after retries.
        StorageUnavailable: the object store does not respond.
    """
    faults = StorageFaults()
    while row := find():
        stored, length = Stored(*row[:_LENGTH]), row[_LENGTH]
        bind_contextvars(state_id=str(stored.state_id))
        sealing.check_key(stored.encryption_key)
        memory.reserve((1 + _BESIDE) * length)
        try:
            if stored.document is None and not stored.object_name:
                key = {"pk": stored.version_id, "state_id": stored.state_id}
                whole = _WHOLE.row(using=using, **key)
                if whole is None:
                    continue  # pruned meanwhile
                stored = Stored(*whole)
            if not stored.object_name:
                return stored, _unseal(stored, stored.document or b"")
            fetched = storage.fetch(stored.object_name)
            try:
                return stored, _unseal(stored, fetched.content)
            except DocumentDamaged:
                faults.object_does_not_open(stored.object_name, fetched)
        except storage.ObjectMissingError:
            faults.object_missing(stored.object_name)
        finally:
            memory.release_memory(_BESIDE * length)
        memory.release_memory(length)
    return None, b""


def _unseal(stored: Stored, payload: bytes) -> bytes:
    sealed = Encrypted(payload, stored.encryption_key)
    return sealing.unseal(sealed, stored.place)
