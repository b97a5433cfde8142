"""Facts that a pipeline reports about a version, which no document contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import Exists, OuterRef
from django.utils import timezone

from infra_service.lib.database.bounded_pages import NamedBy

if TYPE_CHECKING:
    import datetime as dt

    from filterlang.versions import VersionComparison

_LOOKUPS: Final = {"=": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
#: Registries whose host people omit.
_PUBLIC: Final = ("registry.terraform.io/", "registry.opentofu.org/")


class VersionFacts(models.Model):
    """The facts from the pipeline that pushed a version; the last report counts.

    ``providers`` and ``modules`` come from its files (``states.pipeline``).
    """

    # Without a constraint in the database: a release that does not know the table prunes versions.
    version = models.OneToOneField(
        "states.StateVersion",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="facts",
        db_constraint=False,
    )
    commit = models.CharField(max_length=200, blank=True)
    repository = models.CharField(max_length=500, blank=True)
    run = models.CharField(max_length=200, blank=True)
    run_url = models.CharField(max_length=2000, blank=True)
    providers = models.JSONField(default=list)
    modules = models.JSONField(default=list)
    recorded_at: models.DateTimeField[dt.datetime, dt.datetime] = models.DateTimeField(
        default=timezone.now
    )
    recorded_by = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return self.commit or self.run_url or str(self.version_id)


class UsedVersion(models.Model):
    """The version of a provider or a module that a state was pushed with, for filters.

    It belongs to the newest version of a state with facts. The state records whether that version
    is current: a push writes nothing here.
    """

    class Kind(models.TextChoices):
        """The kind of the versioned object, as in filters."""

        PROVIDER = "provider"
        MODULE = "module"

    pk = models.CompositePrimaryKey("version_id", "kind", "source", "sort_key")
    # From the facts. The state is copied, so that an index finds it.
    version = models.ForeignKey(
        "states.StateVersion",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    state = models.ForeignKey(
        "states.State",
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    source = models.CharField(max_length=1_000)
    # Ordered by bytes (``filterlang.versions``).
    sort_key = models.CharField(max_length=500)

    class Meta:
        indexes = [
            models.Index(
                name="usedversion_by_source", fields=["kind", "source", "sort_key", "state"]
            ),
            # The rows of a state, for their replacement.
            models.Index(name="usedversion_of_state", fields=["state"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"


class UsedByState(NamedBy):
    """A filter of states whose current version was pushed with a provider or module version.

    The rows refer to states, some of which have a newer version, so each state is checked. The SQL
    avoids EXISTS, which PostgreSQL may answer by reading all matching rows.
    """

    is_exact = False
    template = "(COALESCE((%(subquery)s), 0) = 1)"

    def __init__(self, kind: str, comparison: VersionComparison) -> None:
        rows = UsedVersion.objects.filter(kind=kind, source=short_source(comparison.name))
        if comparison.key is not None:
            rows = rows.filter((f"sort_key__{_LOOKUPS[comparison.operator]}", comparison.key))
        Exists.__init__(self, rows.filter(version=OuterRef("current_version")))
        self.rows: Any = rows
        self.column = "state_id"


def short_source(source: str) -> str:
    """Return the common form of a source: ``hashicorp/aws``."""
    for registry in _PUBLIC:
        if source.startswith(registry):
            return source.removeprefix(registry)
    return source
