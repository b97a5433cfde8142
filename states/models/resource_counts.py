"""Counts of states by provider, resource type, Terraform version and engine.

The resource index updates the counts in its transactions, because counting thirty million resources
would take too long for a request. ``StateCount`` contains the counts of a state. ``CountTotal``
contains the sums by environment, for callers that can access whole environments, and is small
because there are few environments. The engine of a state is a column of the state itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from django.db import connection, models
from django.db.models import Count, F, Sum

from states.models.catalogue import Environment
from states.models.of_state import OfState, OfStateQuerySet, inside_catalogue, unconstrained_key
from states.models.states import State

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Set

    from django.db.models import QuerySet

    from apikeys.bindings import Binding

#: Maximum bytes of a counted value, the same as for an address in the index.
MOST_BYTES: Final = 2_000
#: Maximum rows per statement.
_ROWS: Final = 500
_NUMBERS: Final = ("states", "resources", "data_sources")


class Kind(models.TextChoices):
    """The kind of a counted value."""

    PROVIDER = "provider"
    RESOURCE_TYPE = "resource_type"
    TERRAFORM_VERSION = "terraform_version"
    #: Only in totals, because the previous release fails on other kinds in ``StateCount``.
    ENGINE = "engine"
    #: Only in totals: the engines of states that are encrypted on the client.
    CLIENT_ENCRYPTION = "client_encryption"


#: The columns of the state for kinds without ``StateCount``. States with null are not counted.
_COLUMNS: Final = {Kind.ENGINE: "engine", Kind.CLIENT_ENCRYPTION: "is_client_encrypted"}


class Counted(NamedTuple):
    """A value with counts, such as a provider."""

    kind: Kind
    value: str


class Amount(NamedTuple):
    """The counts of a value in a state; both are 0 for a Terraform version."""

    resources: int = 0
    data_sources: int = 0


class StateCountQuerySet(OfStateQuerySet["StateCount"]):
    def replace(
        self,
        state_id: uuid.UUID,
        found: Mapping[Counted, Amount],
        *,
        component_id: uuid.UUID,
        environment_id: uuid.UUID,
    ) -> None:
        """Replace the counts of a state, and update the totals.

        The caller must have written the state's row in the same transaction, because a fixed order
        of writes prevents deadlocks.
        """
        own = self.filter(state_id=state_id)
        present = {
            Counted(Kind(kind), value): Amount(*amounts)
            for kind, value, *amounts in own.values_list(
                "kind", "value", "resources", "data_sources"
            )
        }
        changed = sorted(
            key for key in present.keys() | found.keys() if present.get(key) != found.get(key)
        )
        for kind in Kind:
            values = [key.value for key in changed if key in present and key.kind == kind]
            for start in range(0, len(values), _ROWS):
                own.filter(kind=kind, value__in=values[start : start + _ROWS]).delete()
        place = {"component_id": component_id, "environment_id": environment_id}
        self.bulk_create(
            [
                StateCount(state_id=state_id, **place, **key._asdict(), **found[key]._asdict())
                for key in changed
                if key in found
            ],
            batch_size=_ROWS,
        )
        CountTotal.objects.add(
            environment_id, {key: _change(present.get(key), found.get(key)) for key in changed}
        )

    def forget(self, state_id: uuid.UUID) -> None:
        """Remove the counts of a state."""
        own = self.filter(state_id=state_id).values_list("component_id", "environment_id").first()
        if own is not None:
            self.replace(state_id, {}, component_id=own[0], environment_id=own[1])


def _change(before: Amount | None, after: Amount | None) -> tuple[int, int, int]:
    states = (after is not None) - (before is not None)
    before, after = before or Amount(), after or Amount()
    return (
        states,
        after.resources - before.resources,
        after.data_sources - before.data_sources,
    )


class StateCount(OfState):
    """The counts of a value in a state."""

    pk = models.CompositePrimaryKey("state_id", "kind", "value")
    kind = models.CharField(max_length=20, choices=Kind)
    value = models.CharField(max_length=MOST_BYTES)
    resources = models.BigIntegerField()
    data_sources = models.BigIntegerField()

    objects = StateCountQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(name="statecount_by_component", fields=["component", "kind", "value"])
        ]

    def __str__(self) -> str:
        return f"{self.value} of {self.state_id}"


class CountTotalQuerySet(models.QuerySet["CountTotal"]):
    def add(self, environment_id: uuid.UUID, changes: Mapping[Counted, Iterable[int]]) -> None:
        """Add to the totals of an environment, in the order of their keys to prevent deadlocks.

        Rows with counts of 0 are kept for later states with the same value.
        """
        meta: Any = self.model._meta
        environment = meta.get_field("environment")
        written = environment.get_db_prep_value(environment_id, connection)
        rows = [(kind, value, written, *numbers) for (kind, value), numbers in changes.items()]
        table = connection.ops.quote_name(meta.db_table)
        added = ", ".join(f"{name} = {table}.{name} + EXCLUDED.{name}" for name in _NUMBERS)
        for start in range(0, len(rows), _ROWS):
            batch = rows[start : start + _ROWS]
            places = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(batch))
            with connection.cursor() as cursor:
                # The ORM has no upsert that adds.
                cursor.execute(
                    f"INSERT INTO {table} (kind, value, environment_id, {', '.join(_NUMBERS)})"  # noqa: S608 - our own names
                    f" VALUES {places} ON CONFLICT (kind, value, environment_id)"
                    f" DO UPDATE SET {added}",
                    [column for row in batch for column in row],
                )

    def move(self, environment_id: uuid.UUID, before: Set[Counted], after: Set[Counted]) -> None:
        """Count a state with its new values. Call this before ``StateCount.objects.replace``."""
        changed = sorted(before ^ after)
        if changed:
            self.add(environment_id, {k: ((k in after) - (k in before), 0, 0) for k in changed})


class CountTotal(models.Model):
    """The number of states with a value in an environment, and the sums of their counts."""

    pk = models.CompositePrimaryKey("kind", "value", "environment_id")
    kind = models.CharField(max_length=20, choices=Kind)
    value = models.CharField(max_length=MOST_BYTES)
    environment = unconstrained_key(Environment)
    states = models.BigIntegerField()
    resources = models.BigIntegerField()
    data_sources = models.BigIntegerField()

    objects = CountTotalQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.value} in {self.environment_id}"


def engine_counts(engine: str | None, *, is_encrypted: bool | None) -> set[Counted]:
    """Return the counted values of a state with this engine."""
    if engine is None:
        return set()
    kinds = [Kind.ENGINE, *([Kind.CLIENT_ENCRYPTION] if is_encrypted else [])]
    return {Counted(kind, engine) for kind in kinds}


def forget_engine(state_id: uuid.UUID) -> None:
    """Remove a state from the totals of engines. The caller must have locked the state.

    Call this before ``StateCount.objects.forget``.
    """
    own = State.objects.filter(pk=state_id, engine__isnull=False)
    found = own.values_list("environment_id", "engine", "is_client_encrypted").first()
    if found is not None:
        environment_id, engine, is_encrypted = found
        own.update(engine=None, is_client_encrypted=None)
        counted = engine_counts(engine, is_encrypted=is_encrypted)
        CountTotal.objects.move(environment_id, counted, set())


def counts_of(kind: Kind, binding: Binding) -> QuerySet[Any, dict[str, Any]]:
    """Return each value with its counts over the states within this binding.

    The function makes one query, plus a second query for a binding to applications. It sums one row
    per environment, or one row per state if the binding includes only a part of an environment.
    """
    rows: Any
    states: Sum | Count
    if binding.component_ids is None and binding.application_ids is None:
        totals = CountTotal.objects.filter(kind=kind, states__gt=0)
        rows, states = inside_catalogue(totals, binding), Sum("states")
    elif kind in _COLUMNS:
        own = State.objects.visible().inside(binding).filter((f"{_COLUMNS[kind]}__isnull", False))
        by_engine: Any = own.values(value=F("engine")).annotate(states=Count("pk"))
        return cast("QuerySet[Any, dict[str, Any]]", by_engine)
    else:
        rows, states = StateCount.objects.filter(kind=kind).inside(binding), Count("state_id")
    found: QuerySet[Any, dict[str, Any]] = rows.values("value").annotate(
        states=states, resources=Sum("resources"), data_sources=Sum("data_sources")
    )
    return found
