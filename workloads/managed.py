"""The interface between workloads and the resources of states that manage them.

This app does not import the app ``states``. The setting ``WORKLOADS_MANAGING`` names the class that
implements the interface (docs/adr/0046-workloads-joined-with-states-at-query-time.md).
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from django.conf import settings
from django.db.models import CharField, Func
from django.db.models.fields.json import KeyTextTransform
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

    from django.db.models import Case, Exists

    from apikeys.bindings import Binding
    from workloads.models import Workload

#: The maximum number of resources returned for a workload.
MOST_MANAGING: Final = 100
#: Labels with which charts identify their release:
#: https://helm.sh/docs/chart_best_practices/labels/
_RELEASE: Final = "app.kubernetes.io/instance"


class Join(enum.StrEnum):
    """The key that matches a workload with a resource of a state."""

    METADATA_UID = "METADATA_UID"
    HELM_RELEASE = "HELM_RELEASE"


class ManagedBy(NamedTuple):
    """A resource of a state that manages a workload."""

    state_id: uuid.UUID
    component_id: uuid.UUID
    environment_id: uuid.UUID
    address: str
    joined_by: Join


class Managing(Protocol):
    """The interface of a class that finds the resources of states that manage a workload."""

    def is_managed(self) -> Case | Exists:
        """Return a condition for a query of workloads: a resource manages the workload."""

    def managed_by(self, workload: Workload, binding: Binding) -> Sequence[ManagedBy]:
        """Return the resources that manage a workload, in states within the binding."""


@functools.cache
def managing() -> Managing:
    """Return the configured implementation."""
    answering: Managing = import_string(settings.WORKLOADS_MANAGING)()
    return answering


def objects_of(workload: Workload) -> list[str]:
    """Return the keys by which a state may refer to a workload.

    These are the uid of the workload, and ``namespace/name`` of its Helm release.
    """
    release = workload.labels.get(_RELEASE)
    named = [f"{workload.namespace}/{release}"] if release else []
    return [workload.uid, *named] if workload.uid else named


def object_columns(of: Callable[[str], Any]) -> list[Any]:
    """Return the keys of ``objects_of`` as expressions. ``of`` is ``F`` or ``OuterRef``.

    Missing keys are null. An empty uid matches no state.
    """
    release = KeyTextTransform(_RELEASE, of("labels"))
    return [_InBytes(of("uid")), _InBytes(of("namespace"), release)]


class _InBytes(Func):
    """Texts joined by slashes, or null. The comparison uses byte order, like the index."""

    template = "(%(expressions)s)"
    arg_joiner = " || '/' || "
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Add the collation, because the columns of workloads have different collations."""
        template = '((%(expressions)s) COLLATE "C")'
        return self.as_sql(compiler, connection, template=template, **context)
