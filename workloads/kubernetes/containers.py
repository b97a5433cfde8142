"""The conditions under which a container counts as failing."""

from datetime import datetime
from typing import Final

from workloads.kubernetes.facts import TERMINATED, WAITING, ContainerFacts
from workloads.kubernetes.images import running_image

# The kubelet's reasons for a container that waits because of an error. New releases add reasons.
# Most of these match the patterns below.
FAILING_REASONS: Final = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerError",
        "CreateContainerConfigError",
        "RunContainerError",
        "SignatureValidationFailed",
        "RegistryUnavailable",
        "ImageVolumeMountFailed",
        "RROUnsupported",
    }
)
OUT_OF_MEMORY: Final = "OOMKilled"
# The kubelet's own reason for a container that failed without a reason.
UNNAMED_FAILURE: Final = "Error"


def failing_reason(state: str, reason: str, exit_code: int = 0, signal: int = 0) -> str:
    """Return the reason why a container in this state counts as failing, or ""."""
    if state == WAITING and (
        reason in FAILING_REASONS
        or reason.startswith("Err")
        or reason.endswith(("BackOff", "Error"))
    ):
        return reason
    if state == TERMINATED and (exit_code or signal):
        return reason or UNNAMED_FAILURE
    return ""


def container_facts(
    *,
    name: str,
    state: str,
    reason: str = "",
    exit_code: int = 0,
    signal: int = 0,
    ready: bool = False,
    restarts: int = 0,
    last_reason: str = "",
    last_finished_at: datetime | None = None,
    image: str = "",
    image_id: str = "",
) -> ContainerFacts:
    """Reduce a container status: its state, the end of its last run, and its image."""
    restarted_at = last_finished_at if restarts > 0 else None
    return ContainerFacts(
        name=name,
        state=state,
        ready=ready,
        restarts=restarts,
        failing=failing_reason(state, reason, exit_code, signal),
        restarted_at=restarted_at,
        out_of_memory=restarted_at is not None and last_reason == OUT_OF_MEMORY,
        running=running_image(image, image_id),
    )
