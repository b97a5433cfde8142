"""The modules that hold rules, each with the tests that must notice when a rule changes.

Only tests that run in this process belong here: a server that a test starts has no mutant in it.
"""

from __future__ import annotations

from typing import Final

_STATES: Final = (
    "tests/states/test_push.py",
    "tests/states/test_lock.py",
    "tests/states/test_races.py",
    "tests/states/test_named.py",
    "tests/states/test_require_lock.py",
)
_PULLED: Final = (
    "tests/states/test_masking.py",
    "tests/states/test_difference.py",
    "tests/states/test_effort.py",
)
_KEYS: Final = (
    "tests/apikeys/test_grants.py",
    "tests/apikeys/test_descent.py",
    "tests/apikeys/test_ends.py",
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
)

ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "states/actions/rules.py": (*_STATES, "tests/states/test_restore.py"),
    "states/actions/locks.py": (*_STATES, "tests/states/test_force_unlock.py"),
    "states/lockinfo.py": (*_STATES, "tests/states/test_force_unlock.py"),
    "states/actions/registration.py": (
        *_STATES,
        "tests/states/test_bound_catalogue.py",
        "tests/states/test_catalogue.py",
        "tests/states/test_delete.py",
    ),
    "states/actions/push.py": (
        *_STATES,
        "tests/states/test_restore.py",
        "tests/states/test_storage.py",
        "tests/states/test_delete.py",
        "tests/states/test_metrics.py",
        "tests/states/test_import_states.py",
        "tests/infra_service/test_access.py",
    ),
    "states/actions/history.py": (
        "tests/states/test_memory_budget.py",
        "tests/states/test_races.py",
        "tests/states/test_restore.py",
        "tests/states/test_delete.py",
        "tests/states/test_delete_state.py",
        "tests/states/test_undelete.py",
    ),
    "states/document/masking.py": _PULLED,
    "states/document/sensitive_paths.py": (*_PULLED, "tests/states/test_marks.py"),
    "states/document/secret_values.py": _PULLED,
    "states/document/finding.py": (*_PULLED, "tests/states/test_finding.py"),
    "apikeys/bindings.py": (*_CALLERS, *_KEYS),
    "apikeys/grants.py": (*_CALLERS, *_KEYS),
    "apikeys/callers.py": (*_CALLERS, *_KEYS, "tests/apikeys/test_touch.py"),
    "apikeys/authentication.py": (*_CALLERS, "tests/apikeys/test_revalidation.py"),
    "apikeys/permissions.py": (*_CALLERS, *_KEYS, "tests/infra_service/test_home.py"),
    "workloads/kubernetes/health.py": (
        "tests/workloads/kubernetes/test_health.py",
        "tests/workloads/kubernetes/test_recorded.py",
    ),
    "infra_service/api/pagination.py": ("tests/infra_service/test_pagination.py",),
    "infra_service/database/keyset.py": (
        "tests/apikeys/test_keyset.py",
        "tests/infra_service/test_pagination.py",
    ),
    "filterlang/compiler.py": (
        "tests/filterlang/test_compiler.py",
        "tests/filterlang/test_reasons.py",
    ),
}
