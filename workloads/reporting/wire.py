"""The form of a report on the wire: docs/reference/workload-reports.md.

Names, labels and numbers are held to Kubernetes' own limits, so that a report that no cluster could
send gets an error of this form, and not one of a database column.
"""

import datetime as dt
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Raw, Struct

from workloads.collection import MAX_COLLECTOR_VERSION, MAX_REPORT_INTERVAL
from workloads.kubernetes.facts import (
    MAX_IMAGE,
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_STATUS_REASON,
    MAX_UID,
    WorkloadKind,
)
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import MAX_RUNNING

# A cluster is tested to 150,000 pods, so to a tenth of that in workloads; this bounds memory.
MAX_WORKLOADS: Final = 100_000
# No object of Kubernetes has more: one is 1.5 MiB at most.
_MAX_ENTRIES: Final = 1000
_MAX_PODS: Final = 20_000

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# A prefix of 253 characters and a name of 63.
_LABEL_KEY: Final = 317

# PostgreSQL has no place for NUL.
_NO_NUL: Final = r"^[^\x00]*\Z"
_UID: Final = r"^[-0-9A-Za-z]+\Z"
_DNS_LABEL: Final = rf"^{_LABEL}\Z"
_DNS_SUBDOMAIN: Final = rf"^{_SUBDOMAIN}\Z"
_KEY: Final = rf"^(?=(.{{1,253}}/)?[^/]+\Z)({_SUBDOMAIN}/)?{_QUALIFIED}\Z"
_VALUE: Final = rf"^({_QUALIFIED})?\Z"
#: What a text is not that does not match, for people.
PATTERNS: Final = {
    _NO_NUL: "has a NUL character",
    _UID: "is no uid: letters, digits and '-'",
    _DNS_LABEL: "is no DNS label (RFC 1123): small letters, digits and '-'",
    _DNS_SUBDOMAIN: "is no DNS subdomain (RFC 1123): small letters, digits, '-' and '.'",
    _KEY: "is no label's key, such as 'app.kubernetes.io/name'",
    _VALUE: "is no label's value: letters, digits, '-', '_' and '.'",
}

Image: TypeAlias = Annotated[str, Meta(max_length=MAX_IMAGE, pattern=_NO_NUL)]
# A code, and perhaps a detail after it.
Reason: TypeAlias = Annotated[str, Meta(max_length=MAX_STATUS_REASON, pattern=_NO_NUL)]
# What is handed on from Kubernetes.
Code: TypeAlias = Annotated[str, Meta(max_length=128, pattern=_NO_NUL)]
Uid: TypeAlias = Annotated[str, Meta(max_length=MAX_UID, pattern=_UID)]
Version: TypeAlias = Annotated[str, Meta(max_length=MAX_COLLECTOR_VERSION, pattern=_NO_NUL)]
Namespace: TypeAlias = Annotated[str, Meta(max_length=MAX_NAMESPACE, pattern=_DNS_LABEL)]
Name: TypeAlias = Annotated[str, Meta(max_length=MAX_NAME, pattern=_DNS_SUBDOMAIN)]
ContainerName: TypeAlias = Annotated[str, Meta(max_length=63, pattern=_DNS_LABEL)]
LabelKey: TypeAlias = Annotated[
    str,
    Meta(max_length=_LABEL_KEY, pattern=_KEY),
]
LabelValue: TypeAlias = Annotated[str, Meta(max_length=63, pattern=_VALUE)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Moment: TypeAlias = Annotated[dt.datetime, Meta(tz=True)]
Interval: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_REPORT_INTERVAL)]


class _Form(Struct, forbid_unknown_fields=True, gc=False):
    """Refuses fields that it does not know: a misspelt one would be taken for absent.

    None can be part of a cycle, so the garbage collector need not walk through them.
    """


class Container(_Form):
    """One container of a workload, over all its pods."""

    name: ContainerName
    image: Image
    restart_count: Count = 0
    state: Literal["", "running", "waiting", "terminated"] = ""
    ready: bool = False
    # References with digests, sorted: what its pods run.
    running: Annotated[list[Image], Meta(max_length=MAX_RUNNING)] = []


class Termination(_Form, kw_only=True):
    """How the last run of a container ended."""

    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
    reason: Code = ""
    finished_at: Moment | None = None


class PodContainer(_Form):
    """One container of one pod, as its status says."""

    name: ContainerName
    state: Literal["running", "waiting", "terminated"]
    reason: Code = ""
    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    signal: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    ready: bool = False
    restart_count: Count = 0
    last_termination: Termination | None = None
    # As the pod's spec names it, and the `imageID` of its status.
    image: Image = ""
    image_id: Image = ""


class Pod(_Form):
    """One pod of a workload."""

    name: Name
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
    created_at: Moment | None = None
    # Of a Failed pod, such as Evicted.
    reason: Code = ""
    deleting: bool = False
    # Its deletion timestamp, by which it should have terminated.
    deleted_at: Moment | None = None
    unschedulable: bool = False
    containers: Annotated[list[PodContainer], Meta(max_length=_MAX_ENTRIES)] = []
    # Steps before the containers, without sidecars, which are among the containers.
    init_containers: Annotated[list[PodContainer], Meta(max_length=_MAX_ENTRIES)] = []


class Condition(_Form):
    """One of the workload's conditions."""

    type: Code
    status: Literal["True", "False", "Unknown"]
    reason: Code = ""
    last_transition_at: Moment | None = None


class PlaceForm(_Form):
    """What is deleted."""

    namespace: Namespace
    name: Name
    kind: WorkloadKind


class Item(PlaceForm, kw_only=True):
    """One workload: with its health, or with what that follows from."""

    uid: Uid | None = None
    labels: Annotated[dict[LabelKey, LabelValue], Meta(max_length=_MAX_ENTRIES)] = {}
    health_status: HealthStatus | None = None
    status_reason: Reason = ""
    replicas_desired: Count | None = None
    replicas_ready: Count = 0
    replicas_available: Count | None = None
    cpu_requests_millicores: Amount = 0
    cpu_limits_millicores: Amount = 0
    cpu_used_millicores: Amount | None = None
    memory_requests_bytes: Amount = 0
    memory_limits_bytes: Amount = 0
    memory_used_bytes: Amount | None = None
    ephemeral_storage_requests_bytes: Amount = 0
    containers: Annotated[list[Container], Meta(max_length=_MAX_ENTRIES)] = []
    # What health follows from, beside the replicas.
    replicas_updated: Count | None = None
    # All that a Deployment has, also those of an older revision.
    replicas_total: Count | None = None
    created_at: Moment | None = None
    deleting: bool = False
    generation: Amount | None = None
    observed_generation: Amount | None = None
    paused: bool = False
    on_delete: bool = False
    partition: Count = 0
    progress_deadline_seconds: Count | None = None
    conditions: Annotated[list[Condition], Meta(max_length=_MAX_ENTRIES)] = []
    pods: Annotated[list[Pod], Meta(max_length=_MAX_PODS)] | None = None


class _Head(_Form):
    reported_at: Moment
    cluster_uid: Uid | None = None
    report_interval_seconds: Interval | None = None
    collector_version: Version = ""


# Items are cut out first and read one by one, so that each faulty one can be named.
_Items: TypeAlias = Annotated[list[Raw], Meta(max_length=MAX_WORKLOADS)]


class Snapshot(_Head, kw_only=True):
    """All workloads of a cluster."""

    workloads: _Items


class Delta(_Head, kw_only=True):
    """What has changed."""

    upserts: _Items = []
    deletes: _Items = []
