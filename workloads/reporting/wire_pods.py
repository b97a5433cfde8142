"""The format of containers, pods and conditions in a report."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from workloads.kubernetes.records import MAX_RUNNING
from workloads.reporting.wire_types import (
    MAX_ENTRIES,
    Code,
    ContainerName,
    Count,
    ExitCode,
    Form,
    Image,
    Moment,
    Name,
)

MAX_PODS: Final = 20_000


class Container(Form):
    """A container of a workload, with its status in all pods."""

    name: Annotated[ContainerName, Meta(description="The name in the template.")]
    image: Annotated[Image, Meta(description="The image reference in the template.")]
    restart_count: Annotated[Count, Meta(description="The number of restarts in all pods.")] = 0
    state: Annotated[
        Literal["", "running", "waiting", "terminated"],
        Meta(description="The worst state in any pod; empty if there is no pod."),
    ] = ""
    ready: Annotated[bool, Meta(description="Whether the container is ready in every pod.")] = False
    running: Annotated[
        list[Image],
        Meta(
            max_length=MAX_RUNNING,
            description="References, with digests, to the images that the pods run, sorted.",
        ),
    ] = []


class Termination(Form, kw_only=True):
    """The end of a container's last run."""

    exit_code: Annotated[ExitCode, Meta(description="The exit code; 0 means success.")]
    reason: Annotated[Code, Meta(description="A code such as OOMKilled.")] = ""
    finished_at: Annotated[Moment | None, Meta(description="End time; null if unknown.")] = None


class PodContainer(Form):
    """A container of a pod, from its status."""

    name: Annotated[ContainerName, Meta(description="The name in the pod's spec.")]
    state: Annotated[
        Literal["running", "waiting", "terminated"], Meta(description="The current state.")
    ]
    reason: Annotated[
        Code, Meta(description="The reason for the state, such as CrashLoopBackOff.")
    ] = ""
    exit_code: Annotated[
        ExitCode, Meta(description="The exit code of a terminated container, or 0.")
    ] = 0
    signal: Annotated[
        ExitCode, Meta(description="The signal that terminated the container, or 0.")
    ] = 0
    ready: Annotated[
        bool, Meta(description="Whether the container passes its readiness probe.")
    ] = False
    restart_count: Annotated[
        Count, Meta(description="Number of restarts since the creation of the pod.")
    ] = 0
    last_termination: Annotated[
        Termination | None,
        Meta(description="The end of the previous run; null during the first run."),
    ] = None
    image: Annotated[Image, Meta(description="The reference in the pod's spec.")] = ""
    image_id: Annotated[
        Image,
        Meta(description="The `imageID` in the pod's status; empty before the image is pulled."),
    ] = ""


_Containers: TypeAlias = Annotated[list[PodContainer], Meta(max_length=MAX_ENTRIES)]


class Pod(Form):
    """A pod of a workload."""

    name: Annotated[Name, Meta(description="The name of the pod, unique in the workload.")]
    phase: Annotated[
        Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"],
        Meta(description="The phase. Pods in Succeeded or Failed do not count as live."),
    ]
    created_at: Annotated[
        Moment | None,
        Meta(description="The grace period starts at this time if no condition has a later start."),
    ] = None
    reason: Annotated[Code, Meta(description="The reason of a Failed pod, such as Evicted.")] = ""
    deleting: Annotated[
        bool, Meta(description="Whether the pod is being deleted; implied by `deleted_at`.")
    ] = False
    deleted_at: Annotated[
        Moment | None,
        Meta(description="The deletion timestamp, by which the pod should have terminated."),
    ] = None
    unschedulable: Annotated[
        bool, Meta(description="Whether the scheduler finds no node for the pod.")
    ] = False
    containers: Annotated[_Containers, Meta(description="The containers, including sidecars.")] = []
    init_containers: Annotated[
        _Containers, Meta(description="The init containers, without sidecars.")
    ] = []


class Condition(Form):
    """A condition of the workload."""

    type: Annotated[Code, Meta(description="The type, such as Available or Progressing.")]
    status: Annotated[
        Literal["True", "False", "Unknown"],
        Meta(description="The condition's status in the object."),
    ]
    reason: Annotated[Code, Meta(description="The controller's reason code, or empty.")] = ""
    last_transition_at: Annotated[
        Moment | None,
        Meta(description="Time of the last change, which starts the grace period for Available."),
    ] = None
