"""Facts that a pipeline reports about a version, because the document does not contain them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import Exists, OuterRef
from django.utils import timezone

from infra_service.lib.database.bounded_pages import NamedBy
from states.models.of_state import unconstrained_key

if TYPE_CHECKING:
    import datetime as dt

    from filterlang.versions import VersionComparison

_LOOKUPS: Final = {"=": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
#: Registries with a host name that users usually omit.
_PUBLIC: Final = ("registry.terraform.io/", "registry.opentofu.org/")


class VersionFacts(models.Model):
    """The facts from the last report of a pipeline about a version.

    ``providers`` and ``modules`` come from the pipeline's files (``states.pipeline``).
    """

    # Without a constraint in the database, because an older release without this table also prunes
    # versions.
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
    """The version of a provider or a module that a pipeline reported, for filters of states.

    Only the newest version with facts of each state has rows. A push does not change these rows, so
    a filter must check that their version is current.
    """

    class Kind(models.TextChoices):
        """The kind of object that has the version, as in filters."""

        PROVIDER = "provider"
        MODULE = "module"

    pk = models.CompositePrimaryKey("version_id", "kind", "source", "sort_key")
    # The version with the facts. The state is copied for the index.
    version = unconstrained_key("states.StateVersion", models.CASCADE)
    state = unconstrained_key("states.State")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    source = models.CharField(max_length=1_000)
    # The version in a form that sorts by bytes (``filterlang.versions``).
    sort_key = models.CharField(max_length=500)

    class Meta:
        indexes = [
            models.Index(
                name="usedversion_by_source", fields=["kind", "source", "sort_key", "state"]
            ),
            # For the replacement of a state's rows.
            models.Index(name="usedversion_of_state", fields=["state"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"


class UsedByState(NamedBy):
    """A condition for states whose current version used a provider or module version.

    A row may belong to an older version, so the condition compares it with the current version of
    the state. The SQL avoids EXISTS, for which PostgreSQL may read all matching rows.
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
    """Return a source without the host of a public registry, such as ``hashicorp/aws``."""
    for registry in _PUBLIC:
        if source.startswith(registry):
            return source.removeprefix(registry)
    return source
