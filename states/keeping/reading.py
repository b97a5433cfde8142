"""Read stored documents from the database or object store, and record reads in the audit log."""

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
from states.addresses import StateQuery
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
    """The location of a version's document: the row, or an object in the object store."""

    state_id: uuid.UUID
    version_id: uuid.UUID
    number: int
    document: bytes | None
    encryption_key: str
    object_name: str

    @property
    def place(self) -> Place:
        """Return the state, version and number to which the encrypted document is bound."""
        return Place(self.state_id, self.version_id, self.number)


#: The last columns in the rows of ``CURRENT`` and ``PLACED_VERSION``, for the check of bindings.
PLACE: Final = ("component_id", "environment_id", "application_id")
#: The ids of a version and its state. Citus routes the query by the id of the state.
_KEY: Final = {name: Parameter(name, UUIDField()) for name in ("pk", "state_id")}
#: The length of a document in a version that must be read separately.
_UNREAD: Final = Value(None, output_field=BigIntegerField())
#: Seconds between attempts to read the version of a state that was just pushed.
_PAUSES: Final = (0.02, 0.05, 0.1, 0.3)
#: The position of the document's length in the row.
_LENGTH: Final = len(Stored._fields)
_COLUMNS: Final = ("id", "number", "document", "encryption_key", "object_name")


def _found(
    versions: QuerySet[Any, Any], state_id: str, prefix: str = "", *more: str
) -> QuerySet[Any, Any]:
    """Return the columns of ``Stored`` and the length of the document, but no large document.

    A large document is read with a second query, after its memory has been reserved.
    """
    length = Length(f"{prefix}document")
    is_small = When(LessThanOrEqual(length, memory.FREE), then=f"{prefix}document")
    return versions.values_list(
        state_id,
        *(Case(is_small) if name == "document" else F(f"{prefix}{name}") for name in _COLUMNS),
        Coalesce(length, F(f"{prefix}size_bytes"), output_field=BigIntegerField()),
        *more,
    )


def _current(states: StateQuerySet) -> QuerySet[State, Any]:
    """Return the columns of ``Stored`` for the current version.

    On Citus, states and versions are on different servers, and a statement may see a new state
    before its version. The document and its length are therefore null, and ``_current_row`` reads
    the version separately.
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


def _placed() -> QuerySet[StateVersion, Any]:
    versions = StateVersion.objects.filter(pk=Parameter("pk", UUIDField()), state__deleted_at=None)
    places = (f"state__{name}" for name in ("version_number", "updated_at", *PLACE))
    return _found(versions, "state_id", "", *places)


CURRENT: Final = StateQuery(_current)
#: A version of a visible state, by id. Before ``PLACE``, the row has the number of the current
#: version and the time of its push.
PLACED_VERSION: Final = CompiledQuery(_placed)
_VERSION: Final = CompiledQuery(_version)
_BY_ID: Final = CompiledQuery(lambda: _found(StateVersion.objects.filter(**_KEY), "state_id"))
_WHOLE: Final = CompiledQuery(
    lambda: StateVersion.objects.filter(**_KEY).values_list("state_id", *_COLUMNS)
)
#: Additional copies of the document in memory during a read: the data from the database, and the
#: encrypted document.
_BESIDE: Final = 2


def read_current(*, current: Prefetch[Any], actor: Actor, **details: Any) -> bytes:
    """Return the gzipped document that a prefetch of ``CURRENT`` or ``PLACED_VERSION`` finds.

    The audit log records ``details``.

    Raises:
        StateNotFound: the state has no document.
        DocumentUnreadable: the document is damaged or missing, or its key is not configured.
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
    """Return the gzipped document of a version. The audit log records ``details``.

    Raises:
        VersionNotFound: the version does not exist, or was pruned.
        DocumentUnreadable, StorageUnavailable: see ``read_current``.
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
    """Return the location and gzipped document of a version, without a record in the audit log.

    Raises:
        DocumentUnreadable, StorageUnavailable: see ``read_current``.
    """
    return _unsealed(lambda: _VERSION.row(using=using, state_id=state_id, number=number), using)


def find_small(*, state_id: uuid.UUID, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the gzipped documents of these versions by number, with a single query.

    The result excludes large and unreadable documents, and documents in the object store.
    """
    versions = StateVersion.objects.filter(state_id=state_id, number__in=numbers, object_name="")
    found = {}
    for row in _found(versions, "state_id"):
        stored = Stored(*row[:_LENGTH])
        if stored.document is not None:
            with contextlib.suppress(DocumentUnreadable):
                found[stored.number] = _unseal(stored, stored.document)
    return found


def _current_row(current: Prefetch[Any]) -> Sequence[Any] | None:
    """Return the prefetched row. On Citus, read the version separately.

    Raises:
        DatabaseUnavailable: the version is not visible yet (``docs/adr/0083``).
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
    """Return the location and gzipped document of a version by id, or None if it was pruned.

    Raises:
        DocumentUnreadable, StorageUnavailable: see ``read_current``.
    """
    return _unsealed(lambda: _BY_ID.row(pk=version_id, state_id=state_id))


def _unsealed(
    find: Callable[[], Sequence[Any] | None], using: str = DEFAULT_DB_ALIAS
) -> tuple[Stored | None, bytes]:
    """Return the location and the gzipped document of the row that ``find`` returns.

    If an object is missing, the row is read again, because the document may have been moved,
    re-encrypted or pruned.

    Raises:
        DocumentDamaged: the document cannot be decrypted.
        DocumentKeyMissing: the encryption key of the document is not configured.
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
                    continue  # pruned concurrently
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
