"""Create, change and delete clusters, and record collection failures."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Case, DateTimeField, ExpressionWrapper, F, Q, Value, When
from django.db.models.functions import Least, Now
from django.utils import timezone

from apikeys import audit
from infra_service.lib.database.constraints import breaks
from workloads.collection import MAX_COLLECTOR_VERSION, MAX_MESSAGE, MAX_RESOURCE, safe_text
from workloads.errors import ClusterExists, ClusterNotFound
from workloads.models import Cluster, Workload
from workloads.reporting import image_rows
from workloads.reporting.short_transactions import LimitedLockWait, short_wait

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping

    from apikeys.actors import Actor
    from workloads.collection import CollectionFailure

#: The resolution of times in the database.
_MOMENT: Final = dt.timedelta(microseconds=1)


def create_cluster(*, fields: Mapping[str, Any], actor: Actor) -> Cluster:
    """Register a cluster. ``fields`` contains ``name`` and ``report_interval_seconds``.

    Raises:
        ClusterExists: another cluster already has this name.
    """
    cluster = Cluster(**fields)
    with _unique_name(), transaction.atomic():
        cluster.save(force_insert=True)
        audit.authorize_and_record(actor, "cluster.create", cluster.pk, **fields)
    return cluster


def change_cluster(*, cluster_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor) -> None:
    """Change a cluster's ``name`` or ``report_interval_seconds``.

    Raises:
        ClusterNotFound: the cluster has been deleted.
        ClusterExists: another cluster already has this name.
    """
    with _unique_name(), transaction.atomic():
        cluster = _locked(cluster_id)
        changed = {n: value for n, value in changes.items() if value != getattr(cluster, n)}
        if changed:
            Cluster.objects.filter(pk=cluster_id).update(**changed, updated_at=timezone.now())
            details = {n: {"from": getattr(cluster, n), "to": changed[n]} for n in changed}
            audit.authorize_and_record(
                actor, "cluster.update", cluster_id, **{"name": cluster.name, **details}
            )


@contextmanager
def _unique_name() -> Iterator[None]:
    """Convert a violation of the unique name into ``ClusterExists``. Re-raise other errors."""
    try:
        yield
    except IntegrityError as error:
        if breaks(error, Cluster, "cluster_name_unique"):
            raise ClusterExists from error
        raise


@transaction.atomic
def delete_cluster(*, cluster_id: uuid.UUID, actor: Actor) -> None:
    """Delete a cluster and its workloads.

    Raises:
        ClusterNotFound: the cluster has been deleted.
    """
    cluster = _locked(cluster_id)
    workloads, _ = Workload.objects.filter(cluster=cluster).delete()
    image_rows.remove(cluster_id)
    cluster.delete()
    audit.authorize_and_record(
        actor, "cluster.delete", cluster_id, name=cluster.name, workloads=workloads
    )


def record_collection_failure(
    *, cluster_id: uuid.UUID, failure: CollectionFailure, actor: Actor
) -> None:
    """Record why a collector cannot read a cluster. The next report ends the failure.

    Truncate the texts, and remove anything that looks like a credential.

    Raises:
        ClusterNotFound: the cluster does not exist.
        ClusterBusy: another transaction locks the cluster, usually to apply a report.
        CredentialsInvalid, TokenExpired, CallerChanged: see ``Actor.refresh``.
    """
    is_ongoing = Q(collection_error_at__gt=F("last_received_at")) | Q(
        last_received_at=None, collection_error_at__isnull=False
    )
    just_before: Any = ExpressionWrapper(Now() - Value(_MOMENT), DateTimeField())
    values: dict[str, Any] = {
        "collection_error_at": Now(),
        # A report from before the database's clock was set back is older than this failure.
        "last_received_at": Case(
            When(last_received_at__gt=Now(), then=just_before), default=F("last_received_at")
        ),
        # The stored time can be later than now: if the database's clock was set back, or if this
        # statement waited for a newer failure.
        "collection_failing_since": Case(
            When(is_ongoing, then=Least("collection_failing_since", Now())), default=Now()
        ),
        "collection_error_reason": failure.reason.value,
        "collection_error_resource": safe_text(failure.resource, MAX_RESOURCE),
        "collection_error_message": safe_text(failure.message, MAX_MESSAGE),
    }
    if failure.collector_version:
        values["collector_version"] = safe_text(failure.collector_version, MAX_COLLECTOR_VERSION)
    with short_wait():
        if Cluster.objects.filter(LimitedLockWait(), actor.unchanged(), pk=cluster_id).update(
            **values
        ):
            return
        if (again := actor.refresh()) == actor:
            raise ClusterNotFound
    record_collection_failure(cluster_id=cluster_id, failure=failure, actor=again)


def _locked(cluster_id: uuid.UUID) -> Cluster:
    """Return the cluster, locked against reports and changes until the transaction ends."""
    cluster: Cluster | None = Cluster.objects.select_for_update().filter(pk=cluster_id).first()
    if cluster is None:
        raise ClusterNotFound
    return cluster
