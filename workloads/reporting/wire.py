"""The format of the body of a report: docs/reference/workload-reports.md."""

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

# Limits memory. The largest tested clusters have 150,000 pods and 15,000 workloads.
MAX_WORKLOADS: Final = 100_000

_Requests: TypeAlias = Annotated[Amount, Meta(description=DESCRIPTIONS[REQUESTS])]
_Limits: TypeAlias = Annotated[Amount, Meta(description=DESCRIPTIONS[LIMITS])]
_Used: TypeAlias = Annotated[Amount | None, Meta(description=DESCRIPTIONS[USED])]


class PlaceForm(Form):
    """The key of a deleted workload: its namespace, name and kind."""

    namespace: Annotated[Namespace, Meta(description="The Kubernetes namespace.")]
    name: Annotated[
        Name, Meta(description="The name, unique among the workloads of a kind in the namespace.")
    ]
    kind: Annotated[WorkloadKind, Meta(description="The Kubernetes kind.")]


class Item(PlaceForm, kw_only=True):
    """A workload, with its health or the facts from which the service derives the health."""

    uid: Annotated[
        Uid | None,
        Meta(
            description="A workload with a new uid is a new workload, even with the same name. "
            "Null if unknown."
        ),
    ] = None
    labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(max_length=MAX_ENTRIES, description="The labels of the object."),
    ] = {}
    health_status: Annotated[
        HealthStatus | None,
        Meta(description="If null, the service derives the health from the other fields."),
    ] = None
    status_reason: Annotated[
        Reason,
        Meta(
            description="The reason for `health_status`: a code, optionally followed by `: ` and "
            "a detail."
        ),
    ] = ""
    replicas_desired: Annotated[
        Count | None,
        Meta(description="If this field and `health_status` are null, the health is unspecified."),
    ] = None
    replicas_ready: Annotated[
        Count, Meta(description="The number of ready replicas in the status.")
    ] = 0
    replicas_available: Annotated[
        Count | None,
        Meta(description="The default is 0, or the ready replicas for a StatefulSet."),
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
            description="The containers of the template. If `pods` is sent, the pods determine the "
            "state of the containers.",
        ),
    ] = []
    # Additional facts that determine the health.
    replicas_updated: Annotated[
        Count | None,
        Meta(
            description="Number of replicas of the newest revision. The default is "
            "`replicas_desired`."
        ),
    ] = None
    replicas_total: Annotated[
        Count | None,
        Meta(description="For a Deployment, the number of replicas of all revisions."),
    ] = None
    created_at: Annotated[
        Moment | None,
        Meta(description="The grace period starts at this time if no later start is known."),
    ] = None
    deleting: Annotated[bool, Meta(description="Whether the object has a deletion timestamp.")] = (
        False
    )
    generation: Annotated[
        Amount | None,
        Meta(
            description="The generation in the metadata, or null if unknown. If "
            "`observed_generation` is null, the controller has never observed the object."
        ),
    ] = None
    observed_generation: Annotated[
        Amount | None, Meta(description="The last generation that the controller observed.")
    ] = None
    paused: Annotated[bool, Meta(description="Whether the rollout is paused.")] = False
    on_delete: Annotated[bool, Meta(description="Whether the update strategy is OnDelete.")] = False
    partition: Annotated[
        Count, Meta(description="For a StatefulSet, pods below this ordinal are not updated.")
    ] = 0
    progress_deadline_seconds: Annotated[
        Count | None,
        Meta(
            description="The progress deadline of a Deployment, which extends the grace period of "
            "a rollout."
        ),
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
        Moment,
        Meta(description="Time of the observation, which must be later than in the last report."),
    ]
    cluster_uid: Annotated[
        Uid | None,
        Meta(
            description="The uid of the kube-system namespace. Later reports must contain the "
            "first uid received."
        ),
    ] = None
    report_interval_seconds: Annotated[
        Interval | None,
        Meta(
            description="Maximum time until the next report, in seconds. Null keeps the cluster's "
            "interval."
        ),
    ] = None
    collector_version: Annotated[
        Version, Meta(description="The reporter's own version string, such as agent/1.2.")
    ] = ""


# Items are decoded one by one, so that the error names each invalid item.
_Items: TypeAlias = Annotated[list[Raw], Meta(max_length=MAX_WORKLOADS)]


class Snapshot(_Head, kw_only=True):
    """All workloads of a cluster."""

    workloads: Annotated[
        _Items,
        Meta(
            description="All workloads, each once. The service deletes workloads that are missing."
        ),
    ]


class Delta(_Head, kw_only=True):
    """The changes since the last report."""

    upserts: Annotated[
        _Items, Meta(description="Complete items of new and changed workloads.")
    ] = []
    deletes: Annotated[
        _Items, Meta(description="Workloads that no longer exist. Unknown workloads are ignored.")
    ] = []
