"""What manages a workload: the question, and the forms of its answer.

Resources of states do, and this app knows no states. The roof does: the settings name a class of
it that answers (docs/adr/0046-workloads-joined-with-states-at-query-time.md).
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from django.conf import settings
from django.db.models import CharField, Func, OuterRef
from django.db.models.fields.json import KeyTextTransform
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from django.db.models import Exists

    from apikeys.bindings import Binding
    from workloads.models import Workload

#: Resources that are told of one workload.
MOST_MANAGING: Final = 100
#: What charts call their release by: https://helm.sh/docs/chart_best_practices/labels/
_RELEASE: Final = "app.kubernetes.io/instance"


class Join(enum.StrEnum):
    """How a workload and a resource of a state are known to be one."""

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
    """Who knows which resources of states manage a workload."""

    def is_managed(self) -> Exists:
        """Return the condition that any resource manages the workload of a query."""

    def managed_by(self, workload: Workload, binding: Binding) -> Sequence[ManagedBy]:
        """Return the resources that manage it, of states inside the binding."""


@functools.cache
def managing() -> Managing:
    """Return who is asked."""
    answering: Managing = import_string(settings.WORKLOADS_MANAGING)()
    return answering


def objects_of(workload: Workload) -> list[str]:
    """Return what a state may call the workload: its uid, and ``namespace/name`` of its release."""
    release = workload.labels.get(_RELEASE)
    named = [f"{workload.namespace}/{release}"] if release else []
    return [workload.uid, *named] if workload.uid else named


def objects_of_outer() -> list[Any]:
    """Return the same of the workload of the outer query, for a subquery; null where it has none.

    An empty uid is none of any state.
    """
    release = KeyTextTransform(_RELEASE, OuterRef("labels"))
    return [_InBytes(OuterRef("uid")), _InBytes(OuterRef("namespace"), release)]


class _InBytes(Func):
    """Texts with slashes between them, or null; compared by their bytes, as the index is."""

    template = "(%(expressions)s)"
    arg_joiner = " || '/' || "
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Say the order, for that of the workloads' columns is one or the other."""
        template = '((%(expressions)s) COLLATE "C")'
        return self.as_sql(compiler, connection, template=template, **context)
