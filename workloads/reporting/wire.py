"""The format of a report on the wire: docs/reference/workload-reports.md."""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Raw

from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.figures import DESCRIPTIONS, LIMITS, REQUESTS, USED
from workloads.kubernetes.health import HealthStatus
from workloads.reporting.wire_pods import MAX_PODS, Condition, Container, Pod
from workloads.reporting.wire_types import (
    MAX_ENTRIES,
    Amount,
    Count,
    Form,
    Interval,
    LabelKey,
    LabelValue,
    Moment,
    Name,
    Namespace,
    Reason,
    Uid,
    Version,
)

# Clusters are tested with up to 150,000 pods and a tenth of that in workloads; this bounds memory.
MAX_WORKLOADS: Final = 100_000

_Requests: TypeAlias = Annotated[Amount, Meta(description=DESCRIPTIONS[REQUESTS])]
_Limits: TypeAlias = Annotated[Amount, Meta(description=DESCRIPTIONS[LIMITS])]
_Used: TypeAlias = Annotated[Amount | None, Meta(description=DESCRIPTIONS[USED])]


class PlaceForm(Form):
    """The place of a deleted workload."""

    namespace: Annotated[Namespace, Meta(description="Its Kubernetes namespace.")]
    name: Annotated[Name, Meta(description="Unique for the kind in its namespace.")]
    kind: Annotated[WorkloadKind, Meta(description="Its Kubernetes kind.")]


class Item(PlaceForm, kw_only=True):
    """A workload, with its health or the facts from which it is derived."""

    uid: Annotated[
        Uid | None,
        Meta(description="A new uid under the same name is a new workload. Null if unknown."),
    ] = None
    labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(max_length=MAX_ENTRIES, description="The labels of the object."),
    ] = {}
    health_status: Annotated[
        HealthStatus | None,
        Meta(description="If null, the service derives it from the other fields."),
    ] = None
    status_reason: Annotated[
        Reason,
        Meta(description="Why `health_status` applies: a code, optionally with `: ` and a detail."),
    ] = ""
    replicas_desired: Annotated[
        Count | None,
        Meta(description="If null without `health_status`, the health is unspecified."),
    ] = None
    replicas_ready: Annotated[Count, Meta(description="The ready replicas in the status.")] = 0
    replicas_available: Annotated[
        Count | None,
        Meta(description="The default is 0; for a StatefulSet, the ready replicas."),
    ] = None
    cpu_requests_millicores: _Requests = 0
    cpu_limits_millicores: _Limits = 0
    cpu_used_millicores: _Used = None
    memory_requests_bytes: _Requests = 0
    memory_limits_bytes: _Limits = 0
    memory_used_bytes: _Used = None
    ephemeral_storage_requests_bytes: _Requests = 0
    containers: Annotated[
        list[Container],
        Meta(
            max_length=MAX_ENTRIES,
            description="The template's containers. If `pods` is sent, it determines their state.",
        ),
    ] = []
    # The facts for the health, besides the replicas.
    replicas_updated: Annotated[
        Count | None,
        Meta(description="Replicas of the newest revision; the default is the desired replicas."),
    ] = None
    replicas_total: Annotated[
        Count | None,
        Meta(description="For a Deployment, all replicas, including older revisions."),
    ] = None
    created_at: Annotated[
        Moment | None,
        Meta(description="The grace period starts here if no later start is known."),
    ] = None
    deleting: Annotated[bool, Meta(description="Whether it has a deletion timestamp.")] = False
    generation: Annotated[
        Amount | None,
        Meta(description="Without `observed_generation`, it was never observed. Null if unknown."),
    ] = None
    observed_generation: Annotated[
        Amount | None, Meta(description="The last generation that its controller has observed.")
    ] = None
    paused: Annotated[bool, Meta(description="Whether its rollout is paused.")] = False
    on_delete: Annotated[bool, Meta(description="Whether its update strategy is OnDelete.")] = False
    partition: Annotated[
        Count, Meta(description="For a StatefulSet, pods below this ordinal are not updated.")
    ] = 0
    progress_deadline_seconds: Annotated[
        Count | None,
        Meta(description="For a Deployment; it extends the grace period of a rollout."),
    ] = None
    conditions: Annotated[
        list[Condition], Meta(max_length=MAX_ENTRIES, description="The conditions in the status.")
    ] = []
    pods: Annotated[
        Annotated[list[Pod], Meta(max_length=MAX_PODS)] | None,
        Meta(description="Null if the reporter does not send pods."),
    ] = None


class _Head(Form):
    reported_at: Annotated[
        Moment, Meta(description="Time of the observation, later than that of the last report.")
    ]
    cluster_uid: Annotated[
        Uid | None,
        Meta(
            description="The uid of the kube-system namespace; the first one received is binding."
        ),
    ] = None
    report_interval_seconds: Annotated[
        Interval | None,
        Meta(
            description="Maximum seconds until the next report; null keeps the cluster's interval."
        ),
    ] = None
    collector_version: Annotated[
        Version, Meta(description="The reporter's own version string, such as agent/1.2.")
    ] = ""


# Items stay raw and are decoded in turn, so that the error names each faulty item.
_Items: TypeAlias = Annotated[list[Raw], Meta(max_length=MAX_WORKLOADS)]


class Snapshot(_Head, kw_only=True):
    """All workloads of a cluster."""

    workloads: Annotated[
        _Items, Meta(description="All workloads, each once; missing workloads are deleted.")
    ]


class Delta(_Head, kw_only=True):
    """The changes since the last report."""

    upserts: Annotated[
        _Items, Meta(description="Complete items of the new and the changed workloads.")
    ] = []
    deletes: Annotated[
        _Items, Meta(description="Workloads that no longer exist; unknown ones are allowed.")
    ] = []
