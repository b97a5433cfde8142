"""The format of a report on the wire: docs/reference/workload-reports.md.

Names, labels and numbers have Kubernetes' own limits, so that an impossible report gets an error of
this format instead of an error of a database column.
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

# Clusters are tested with up to 150,000 pods and a tenth of that in workloads; this bounds memory.
MAX_WORKLOADS: Final = 100_000
# No Kubernetes object has more entries: its size is at most 1.5 MiB.
_MAX_ENTRIES: Final = 1000
_MAX_PODS: Final = 20_000

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# A prefix of 253 characters, a slash and a name of 63.
_LABEL_KEY: Final = 317

# PostgreSQL cannot store NUL.
_NO_NUL: Final = r"^[^\x00]*\Z"
_UID: Final = r"^[-0-9A-Za-z]+\Z"
_DNS_LABEL: Final = rf"^{_LABEL}\Z"
_DNS_SUBDOMAIN: Final = rf"^{_SUBDOMAIN}\Z"
_KEY: Final = rf"^(?=(.{{1,253}}/)?[^/]+\Z)({_SUBDOMAIN}/)?{_QUALIFIED}\Z"
_VALUE: Final = rf"^({_QUALIFIED})?\Z"
#: Messages for texts that do not match.
PATTERNS: Final = {
    _NO_NUL: "has a NUL character",
    _UID: "is no uid: letters, digits and '-'",
    _DNS_LABEL: "is no DNS label (RFC 1123): small letters, digits and '-'",
    _DNS_SUBDOMAIN: "is no DNS subdomain (RFC 1123): small letters, digits, '-' and '.'",
    _KEY: "is no label's key, such as 'app.kubernetes.io/name'",
    _VALUE: "is no label's value: letters, digits, '-', '_' and '.'",
}

Image: TypeAlias = Annotated[str, Meta(max_length=MAX_IMAGE, pattern=_NO_NUL)]
# A code, and optionally a detail.
Reason: TypeAlias = Annotated[str, Meta(max_length=MAX_STATUS_REASON, pattern=_NO_NUL)]
# Codes passed through from Kubernetes.
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
    """Refuses unknown fields: a misspelt field would be taken for absent.

    Instances cannot be part of a cycle, so the garbage collector need not track them.
    """


class Container(_Form):
    """A container of a workload, over all its pods."""

    name: ContainerName
    image: Image
    restart_count: Count = 0
    state: Literal["", "running", "waiting", "terminated"] = ""
    ready: bool = False
    # References with digests, sorted: the images that its pods run.
    running: Annotated[list[Image], Meta(max_length=MAX_RUNNING)] = []


class Termination(_Form, kw_only=True):
    """The end of a container's last run."""

    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
    reason: Code = ""
    finished_at: Moment | None = None


class PodContainer(_Form):
    """A container of a pod, from its status."""

    name: ContainerName
    state: Literal["running", "waiting", "terminated"]
    reason: Code = ""
    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    signal: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    ready: bool = False
    restart_count: Count = 0
    last_termination: Termination | None = None
    # The name in the pod's spec, and the `imageID` of its status.
    image: Image = ""
    image_id: Image = ""


class Pod(_Form):
    """A pod of a workload."""

    name: Name
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
    created_at: Moment | None = None
    # The reason of a Failed pod, such as Evicted.
    reason: Code = ""
    deleting: bool = False
    # The deletion timestamp, at which it should have terminated.
    deleted_at: Moment | None = None
    unschedulable: bool = False
    containers: Annotated[list[PodContainer], Meta(max_length=_MAX_ENTRIES)] = []
    # Init containers without sidecars; sidecars are among the containers.
    init_containers: Annotated[list[PodContainer], Meta(max_length=_MAX_ENTRIES)] = []


class Condition(_Form):
    """A condition of the workload."""

    type: Code
    status: Literal["True", "False", "Unknown"]
    reason: Code = ""
    last_transition_at: Moment | None = None


class PlaceForm(_Form):
    """The place of a deleted workload."""

    namespace: Namespace
    name: Name
    kind: WorkloadKind


class Item(PlaceForm, kw_only=True):
    """A workload, with its health or the facts from which it is derived."""

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
    # The facts for the health, besides the replicas.
    replicas_updated: Count | None = None
    # All replicas of a Deployment, including those of an older revision.
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


# Items stay raw and are decoded in turn, so that the error names each faulty item.
_Items: TypeAlias = Annotated[list[Raw], Meta(max_length=MAX_WORKLOADS)]


class Snapshot(_Head, kw_only=True):
    """All workloads of a cluster."""

    workloads: _Items


class Delta(_Head, kw_only=True):
    """The changes since the last report."""

    upserts: _Items = []
    deletes: _Items = []
