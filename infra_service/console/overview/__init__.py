"""The admin's overview: a bounded number of queries, without scans of large tables.

The overview starts with findings that need attention. A user sees only the sections for which the
user has the view permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra_service.console.overview.attention import findings
from infra_service.console.overview.changes import latest_changes
from infra_service.console.overview.clusters import count_clusters
from infra_service.console.overview.events import latest_events
from infra_service.console.overview.states import held_locks, state_figures

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User


def overview(user: User | AnonymousUser) -> dict[str, Any]:
    """Return the sections of the overview that the user may view."""
    locks = held_locks() if user.has_perm("states.view_state") else None
    clusters = count_clusters() if user.has_perm("workloads.view_cluster") else None
    found = findings(user, locks, clusters)
    sections = {
        "findings": found,
        "attention": [finding for finding in found if finding.number.value],
        "states": locks and state_figures(locks),
        "clusters": clusters,
        "changes": latest_changes() if user.has_perm("change_history.view_change") else None,
        "events": latest_events(user) if user.has_perm("apikeys.view_auditevent") else None,
    }
    return {name: section for name, section in sections.items() if section}
