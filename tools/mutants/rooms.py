"""The modules to mutate, each with the tests that must detect a mutant.

The listed tests run the code in their own process. A server that a test starts does not contain
the mutant.
"""

from __future__ import annotations

import sys
from typing import Final

_STATES: Final = (
    "tests/states/test_push.py",
    "tests/states/test_lock.py",
    "tests/states/test_races.py",
    "tests/states/test_named.py",
    "tests/states/test_require_lock.py",
    "tests/states/test_freeze.py",
)
_PULLED: Final = (
    "tests/states/test_masking.py",
    "tests/states/test_difference.py",
    "tests/states/test_work_limit.py",
)
_KEYS: Final = (
    "tests/apikeys/test_grants.py",
    "tests/apikeys/test_descent.py",
    "tests/apikeys/test_expiry_and_revocation.py",
    "tests/apikeys/test_mint_token.py",
    "tests/apikeys/test_bindings.py",
    "tests/apikeys/test_rotate_key.py",
    "tests/apikeys/test_names_in_bindings.py",
)
_CALLERS: Final = (
    "tests/apikeys/test_authentication.py",
    "tests/apikeys/test_whoami.py",
    "tests/apikeys/test_metrics.py",
    "tests/apikeys/test_callers.py",
    "tests/apikeys/test_networks.py",
)
_BOUNDED_PAGES: Final = "infra_service/lib/database/bounded_pages/"
#: The modules that are mutated only on PostgreSQL, because SQLite runs little of their code.
ON_POSTGRESQL: Final = tuple(
    f"{_BOUNDED_PAGES}{name}.py"
    for name in (
        "bounded_tables", "conditions", "partitions", "planning", "reading", "segments",
        "selecting", "semi_joins",
    )
)  # fmt: skip
_PAGES: Final = (
    "tests/apikeys/test_pages.py",
    "tests/apikeys/test_plans.py",
    "tests/infra_service/change_history/test_plans.py",
    "tests/states/test_bound_catalogue.py",
    "tests/states/test_filter_versions.py",
    "tests/states/test_list_resources.py",
    "tests/states/test_plans.py",
    "tests/states/test_resource_plans.py",
    "tests/workloads/test_fleet.py",
    "tests/workloads/test_fleet_plans.py",
)

ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "states/actions/rules.py": (*_STATES, "tests/states/test_restore.py"),
    "states/actions/locks.py": (
        *_STATES,
        "tests/states/test_force_unlock.py",
        "tests/states/test_leftovers.py",
        "tests/states/test_moved_components.py",
        "tests/states/remote/test_deleted.py",
        "tests/states/remote/test_locking.py",
    ),
    "states/lockinfo.py": (
        *_STATES,
        "tests/states/test_force_unlock.py",
        "tests/states/remote/test_locking.py",
    ),
    "states/lock_holders.py": (
        "tests/states/test_admin_state_list.py",
        "tests/states/test_admin_states.py",
        "tests/states/test_lock_holder.py",
        "tests/infra_service/test_overview.py",
    ),
    "states/targets.py": (
        *_STATES,
        "tests/states/test_import_states.py",
        "tests/states/test_moved_components.py",
        "tests/infra_service/test_access_log.py",
    ),
    "apikeys/races.py": (*_STATES, "tests/apikeys/test_patch_key.py"),
    "states/actions/registration.py": (
        *_STATES,
        "tests/states/test_registration.py",
        "tests/states/test_bound_catalogue.py",
        "tests/states/test_catalogue.py",
        "tests/states/test_delete.py",
        "tests/infra_service/test_access_log.py",
    ),
    "states/actions/push.py": (
        *_STATES,
        "tests/states/test_restore.py",
        "tests/states/test_storage.py",
        "tests/states/test_delete.py",
        "tests/states/test_foreign_documents.py",
        "tests/states/test_leftovers.py",
        "tests/states/test_metrics.py",
        "tests/states/remote/test_versions.py",
        "tests/states/test_import_states.py",
        "tests/infra_service/test_access_log.py",
    ),
    "states/actions/history.py": (
        "tests/states/test_memory_budget.py",
        "tests/states/test_races.py",
        "tests/states/test_restore.py",
        "tests/states/test_delete.py",
        "tests/states/test_delete_state.py",
        "tests/states/test_undelete.py",
        "tests/states/test_counts.py",
        "tests/states/test_foreign_documents.py",
        "tests/states/test_indexing.py",
        "tests/states/remote/test_deleted.py",
        "tests/states/remote/test_workspaces.py",
    ),
    "states/actions/replacement.py": ("tests/states/test_foreign_documents.py",),
    "states/document/masking.py": (
        *_PULLED,
        "tests/states/test_copies.py",
        "tests/states/test_outputs_document.py",
    ),
    "states/document/sensitive_paths.py": (*_PULLED, "tests/states/test_marks.py"),
    "states/document/secret_values.py": (*_PULLED, "tests/states/test_copies.py"),
    "states/document/secret_rule.py": ("tests/states/test_secret_rule.py",),
    "states/document/value_names.py": ("tests/states/test_secret_rule.py",),
    "states/document/public_words.py": ("tests/states/test_secret_rule.py",),
    "states/document/marked_places.py": ("tests/states/test_copies.py",),
    "states/document/finding.py": (*_PULLED, "tests/states/test_finding.py"),
    "states/document/encodings.py": (*_PULLED, "tests/states/test_finding.py"),
    "states/document/hidden.py": (*_PULLED, "tests/states/test_complete_differences.py"),
    "states/document/address_text.py": ("tests/states/test_reading_as_terraform.py",),
    "states/models/of_state.py": (
        "tests/states/test_counts.py",
        "tests/states/test_dependencies.py",
        "tests/states/test_list_states.py",
        "tests/states/test_models.py",
        "tests/states/test_names_in_filters.py",
        "tests/states/test_outside_a_binding.py",
        "tests/states/test_slugs.py",
    ),
    "apikeys/bindings.py": (*_CALLERS, *_KEYS, "tests/apikeys/test_commands.py"),
    "apikeys/grants.py": (*_CALLERS, *_KEYS),
    "apikeys/callers.py": (
        *_CALLERS,
        *_KEYS,
        "tests/apikeys/test_idle_owners.py",
        "tests/apikeys/test_touch.py",
    ),
    "apikeys/authentication.py": (*_CALLERS, "tests/apikeys/test_revalidation.py"),
    "apikeys/permissions.py": (*_CALLERS, *_KEYS, "tests/infra_service/test_home.py"),
    "apikeys/scopes.py": ("tests/apikeys/test_grants.py", "tests/apikeys/test_whoami.py"),
    "apikeys/idle_owners.py": ("tests/apikeys/test_idle_owners.py",),
    "apikeys/revalidation.py": (
        "tests/apikeys/test_revalidation.py",
        "tests/apikeys/test_descent.py",
        "tests/apikeys/test_expiry_and_revocation.py",
        "tests/states/test_push.py",
    ),
    "apikeys/actions/descent.py": (
        *_KEYS,
        "tests/apikeys/test_patch_key.py",
        "tests/apikeys/test_revoke_key.py",
        "tests/apikeys/federation/test_trust_command.py",
        "tests/apikeys/federation/test_trust_policies.py",
    ),
    "apikeys/actions/rules.py": (*_KEYS, "tests/apikeys/test_create_key.py"),
    "apikeys/actions/exchange.py": (
        "tests/apikeys/test_exchange.py",
        "tests/apikeys/federation/test_try_policy.py",
    ),
    "apikeys/federation/assertions.py": (
        "tests/apikeys/test_assertions.py",
        "tests/apikeys/test_exchange.py",
    ),
    "apikeys/federation/conditions.py": (
        "tests/apikeys/federation/test_conditions.py",
        "tests/apikeys/federation/test_trust_policies.py",
        "tests/apikeys/federation/test_try_policy.py",
    ),
    "workloads/kubernetes/health.py": (
        "tests/workloads/kubernetes/test_health.py",
        "tests/workloads/kubernetes/test_recorded.py",
    ),
    "workloads/kubernetes/containers.py": (
        "tests/workloads/kubernetes/test_containers.py",
        "tests/workloads/kubernetes/test_recorded.py",
        "tests/workloads/kubernetes/test_tally.py",
    ),
    "workloads/cluster_health.py": (
        "tests/workloads/test_cluster_health.py",
        "tests/workloads/test_collection.py",
        "tests/workloads/test_clusters.py",
        "tests/workloads/test_clocks.py",
        "tests/workloads/test_metrics.py",
        "tests/workloads/test_transitions.py",
    ),
    "workloads/reporting/transitions.py": (
        "tests/workloads/test_availability.py",
        "tests/workloads/test_history_api.py",
        "tests/workloads/test_transitions.py",
    ),
    "infra_service/lib/http_client/addresses.py": (
        "tests/apikeys/federation/test_issuers.py",
        "tests/apikeys/test_issuer_keys.py",
        "tests/infra_service/webhooks/test_api.py",
        "tests/infra_service/webhooks/test_delivering.py",
    ),
    "infra_service/webhooks/subscriptions.py": (
        "tests/infra_service/webhooks/test_delivering.py",
        "tests/infra_service/webhooks/test_enabled_times.py",
        "tests/infra_service/webhooks/test_passes.py",
        "tests/infra_service/webhooks/test_trail.py",
        "tests/infra_service/webhooks/test_waiting.py",
    ),
    "infra_service/webhooks/secrets.py": (
        "tests/infra_service/webhooks/test_api.py",
        "tests/infra_service/webhooks/test_delivering.py",
    ),
    "infra_service/lib/api/orders.py": (
        "tests/infra_service/test_list_checks.py",
        "tests/infra_service/test_pagination.py",
        "tests/infra_service/test_schema.py",
        "tests/states/test_list_states.py",
    ),
    "infra_service/lib/api/pagination.py": (
        "tests/infra_service/test_pagination.py",
        "tests/infra_service/test_schema.py",
        "tests/apikeys/test_list_keys.py",
        "tests/states/test_counts.py",
        "tests/states/test_list_states.py",
        "tests/states/test_resource_index.py",
        "tests/workloads/test_fleet.py",
    ),
    "infra_service/lib/database/keyset.py": (
        "tests/apikeys/test_keyset.py",
        "tests/infra_service/test_pagination.py",
    ),
    "infra_service/lib/database/compiled.py": (
        *_CALLERS,
        *_STATES,
        "tests/apikeys/test_exchange.py",
        "tests/apikeys/test_idempotency.py",
        "tests/states/test_import_states.py",
        "tests/states/test_read.py",
    ),
    "filterlang/compiler.py": (
        "tests/filterlang/test_compiler.py",
        "tests/filterlang/test_reasons.py",
    ),
    "filterlang/lookups.py": (
        "tests/filterlang/test_compiler.py",
        "tests/filterlang/test_lookups.py",
        "tests/filterlang/test_meaning.py",
    ),
    "filterlang/versions.py": ("tests/filterlang/test_versions.py",),
    f"{_BOUNDED_PAGES}indexes.py": ("tests/infra_service/test_page_indexes.py",),
    **dict.fromkeys(ON_POSTGRESQL, _PAGES),
}


def rooms_below(prefix: str) -> list[str]:
    """Return the modules whose path begins with the prefix, or exit if there are none."""
    found = [room for room in ROOMS if room.startswith(prefix)]
    if not found:
        sys.exit(f"tools/mutants/rooms.py lists no module that begins with {prefix}")
    return found
