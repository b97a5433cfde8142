"""The load of a team in a busy hour. A company consists of teams, and each step adds teams."""

from __future__ import annotations

from typing import Final

#: The number of states per team by document size in bytes. Only one in several teams has a larger
#: state, with this number of teams per state.
STATES: Final = {10_000: 6, 100_000: 3}
TEAMS_PER_STATE: Final = {1_000_000: 4, 5_000_000: 20}

#: Pipelines per hour. Each pipeline exchanges a platform's token, and runs ``init`` (GET) and
#: ``plan`` (LOCK, GET, UNLOCK). A share also runs ``apply`` (LOCK, GET, POST, UNLOCK).
PIPELINES_PER_HOUR: Final = 30
APPLY_SHARE: Final = 0.4

#: The number of clusters per team by their number of workloads. Only one in several teams has a
#: larger cluster, with this number of teams per cluster.
CLUSTERS: Final = {50: 2, 500: 1}
TEAMS_PER_CLUSTER: Final = {5_000: 20}
#: The seconds between two deltas of a cluster, the share of changed workloads in a delta, and the
#: seconds between two snapshots.
REPORT_SECONDS, CHANGED_SHARE, SNAPSHOT_SECONDS = 30, 0.02, 600

#: The admin pages and API lists that the users of a team open per hour.
PAGES_PER_HOUR, LISTS_PER_HOUR = 60, 60

#: The limit for the 99th percentile of each kind of request, in milliseconds.
MOST_MILLISECONDS: Final = 250
#: The limit for snapshots. They are background transfers, which may take until the next delta.
MOST_MILLISECONDS_OF_A_SNAPSHOT: Final = 5_000


def states_of(team: int) -> list[int]:
    """Return the sizes of the team's states in bytes."""
    return _of_team(team, STATES, TEAMS_PER_STATE)


def clusters_of(team: int) -> list[int]:
    """Return the number of workloads of each cluster of the team."""
    return _of_team(team, CLUSTERS, TEAMS_PER_CLUSTER)


def _of_team(team: int, counts: dict[int, int], teams_per_one: dict[int, int]) -> list[int]:
    own = [size for size, count in counts.items() for _ in range(count)]
    return own + [size for size, teams in teams_per_one.items() if team % teams == 0]
