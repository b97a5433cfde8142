"""The load of a team in a busy hour. A company consists of teams; a step of the test adds teams."""

from __future__ import annotations

from typing import Final

#: States of a team by the size of their documents in bytes, and states that only each so many teams
#: have.
STATES: Final = {10_000: 6, 100_000: 3}
TEAMS_PER_STATE: Final = {1_000_000: 4, 5_000_000: 20}

#: Pipelines per hour. Each exchanges a platform's token, and runs ``init`` (GET) and ``plan``
#: (LOCK, GET, UNLOCK); a share also runs ``apply`` (LOCK, GET, POST, UNLOCK).
PIPELINES_PER_HOUR: Final = 30
APPLY_SHARE: Final = 0.4

#: Clusters of a team by their workloads, and clusters that only one in so many teams has.
CLUSTERS: Final = {50: 2, 500: 1}
TEAMS_PER_CLUSTER: Final = {5_000: 20}
#: Seconds between two deltas of a cluster, with this share of its workloads changed, and between
#: two snapshots.
REPORT_SECONDS, CHANGED_SHARE, SNAPSHOT_SECONDS = 30, 0.02, 600

#: Pages of the admin and API lists that the people of a team open per hour.
PAGES_PER_HOUR, LISTS_PER_HOUR = 60, 60

#: The 99th percentile in milliseconds that each kind of request must stay within.
MOST_MILLISECONDS: Final = 250
#: A snapshot is a bulk transfer that nobody waits for: at most the time until the next delta.
MOST_MILLISECONDS_OF_A_SNAPSHOT: Final = 5_000


def states_of(team: int) -> list[int]:
    """Return the sizes of the team's states in bytes."""
    return _of_team(team, STATES, TEAMS_PER_STATE)


def clusters_of(team: int) -> list[int]:
    """Return the numbers of workloads of the team's clusters."""
    return _of_team(team, CLUSTERS, TEAMS_PER_CLUSTER)


def _of_team(team: int, counts: dict[int, int], teams_per_one: dict[int, int]) -> list[int]:
    own = [size for size, count in counts.items() for _ in range(count)]
    return own + [size for size, teams in teams_per_one.items() if team % teams == 0]
