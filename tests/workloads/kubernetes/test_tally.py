import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.snapshots import tally_pods
from workloads.kubernetes.facts import ContainerFacts, PodFacts, PodKey
from workloads.kubernetes.tally import ContainerTally, PodTally, most_frequent

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
moments = st.none() | st.integers(0, 3).map(lambda hours: NOON + timedelta(hours=hours))
container_facts = st.builds(
    ContainerFacts,
    name=st.sampled_from(["app", "proxy"]),
    state=st.sampled_from(["running", "waiting", "terminated"]),
    ready=st.booleans(),
    restarts=st.integers(0, 5),
    failing=st.sampled_from(["", "", "CrashLoopBackOff", "Error"]),
    restarted_at=moments,
    out_of_memory=st.booleans(),
)
amounts = st.integers(0, 10**12)
pod_facts = st.builds(
    PodFacts,
    key=st.builds(PodKey, st.just("demo"), st.sampled_from("abcdef")),
    owner_uid=st.just("owner"),
    active=st.booleans(),
    live=st.booleans(),
    ready=st.booleans(),
    held=st.sampled_from(["", "NodeLost"]),
    starting=st.sampled_from(["", "ContainerCreating"]),
    failed=st.sampled_from(["", "Evicted"]),
    resize=st.sampled_from(["", "ResizeDeferred"]),
    since=moments,
    unschedulable=st.booleans(),
    containers=st.lists(container_facts, max_size=3).map(tuple),
    resources=st.tuples(amounts, amounts, amounts, amounts, amounts),
)
USAGE = {PodKey("demo", name): (ord(name), 2 * ord(name)) for name in "abc"}


def pod(name: str = "a", **facts: Any) -> PodFacts:
    return PodFacts(PodKey("demo", name), "owner", **facts)


@given(st.lists(pod_facts, max_size=8), st.randoms(use_true_random=False))
def test_sum_is_independent_of_order(pods: list[PodFacts], shuffle: random.Random) -> None:
    ordered = tally_pods(pods, USAGE)
    shuffle.shuffle(pods)
    shuffled = tally_pods(pods, USAGE)
    for tally in (ordered, shuffled):
        tally.restarts.sort()
    assert ordered == shuffled
    assert most_frequent(ordered.failing) == most_frequent(shuffled.failing)


def test_a_pod_that_has_ended_counts_with_its_reason_alone() -> None:
    ended = pod(
        active=False,
        live=False,
        failed="Evicted",
        since=NOON,
        containers=(ContainerFacts("app", "terminated", failing="Error"),),
        resources=(1, 2, 3, 4, 5),
    )
    assert tally_pods([ended], USAGE) == PodTally(failed=Counter(Evicted=1), failed_since=NOON)


def test_a_pod_that_is_being_deleted_still_takes_resources() -> None:
    leaving = pod(
        live=False,
        since=NOON,
        unschedulable=True,
        containers=(ContainerFacts("app", "running"),),
        resources=(1, 2, 3, 4, 5),
    )
    assert tally_pods([leaving], USAGE) == PodTally(
        measured=1,
        reserved=[1, 2, 3, 4, 5],
        used=[97, 194],
        terminating=1,
        terminating_since=NOON,
    )


def test_live_pods_count_in_full() -> None:
    crash, earlier = NOON, NOON - timedelta(hours=1)
    tally = tally_pods(
        [
            pod("x", unschedulable=True, since=NOON),
            pod(
                "y",
                ready=True,
                containers=(
                    ContainerFacts("app", "waiting", False, 7, "CrashLoopBackOff", crash),
                    ContainerFacts("proxy", "running", True),
                ),
            ),
            pod(
                "z",
                since=earlier,
                starting="PodInitializing",
                resize="ResizeInfeasible",
                containers=(
                    ContainerFacts("app", "terminated", False, 1, "OOMKilled", earlier, True),
                ),
            ),
        ]
    )
    assert tally == PodTally(
        live=3,
        broken=1,
        unschedulable=1,
        failing=tally.failing,
        ready=1,
        unready_since=earlier,
        starting=Counter(PodInitializing=1),
        resizing=Counter(ResizeInfeasible=1),
        restarts=[(crash, False), (earlier, True)],
        containers={
            "app": ContainerTally(restarts=8, ready=0, state="terminated"),
            "proxy": ContainerTally(restarts=0, ready=1, state="running"),
        },
    )
    assert dict(tally.failing) == {"CrashLoopBackOff": 1, "OOMKilled": 1}


def test_most_frequent_failure_is_returned() -> None:
    def fails(*reasons: str) -> PodTally:
        return tally_pods(
            pod(containers=(ContainerFacts("app", "waiting", failing=reason),))
            for reason in reasons
        )

    assert most_frequent(fails().failing) == ""
    assert most_frequent(fails("Error", "CrashLoopBackOff", "Error").failing) == "Error"
    assert most_frequent(fails("Error", "CrashLoopBackOff").failing) == "CrashLoopBackOff"
