"""Databases of earlier releases: fully migrated ones continue; older versions are refused."""

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from infra_service.operations import health
from infra_service.operations.squashed_migrations import LAST_UNSQUASHED
from tests.conftest import error_reason

pytestmark = [pytest.mark.both, pytest.mark.django_db]
SQUASHED = {
    app: (name, migration.replaces)
    for (app, name), migration in MigrationLoader(None).replacements.items()
}
OURS = ["apikeys", "infra_service", "states", "webhooks", "workloads"]


@pytest.fixture(autouse=True)
def fresh_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_seen_migrated", False)


def recorded() -> set[tuple[str, str]]:
    return {*MigrationRecorder(connection).applied_migrations()}


def test_each_app_has_a_single_squashed_migration() -> None:
    assert sorted(SQUASHED) == OURS


def test_new_database_records_the_migrations_of_the_previous_release() -> None:
    """So that the release before finds nothing to do on it."""
    assert recorded() >= {key for _, replaced in SQUASHED.values() for key in replaced}


def test_a_database_with_all_migrations_of_the_release_before_is_ready() -> None:
    recorder = MigrationRecorder(connection)
    for app in OURS:
        recorder.record_unapplied(app, SQUASHED[app][0])

    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    assert Client().get("/readyz").status_code == 200

    call_command("migrate", verbosity=0, skip_checks=False)
    assert recorded() >= {(app, SQUASHED[app][0]) for app in OURS}


@pytest.mark.parametrize("app", OURS)
def test_older_database_is_rejected_and_unchanged(app: str) -> None:
    name, replaced = SQUASHED[app]
    recorder = MigrationRecorder(connection)
    for missing in (name, replaced[-1][1]):
        recorder.record_unapplied(app, missing)
    before = recorded()

    response = Client(raise_request_exception=False).get("/readyz")
    assert (response.status_code, error_reason(response)) == (503, "MIGRATIONS_PENDING")
    with pytest.raises(SystemCheckError) as refused:
        call_command("migrate", verbosity=0, skip_checks=False)
    assert f"upgrade it to commit {LAST_UNSQUASHED} of this repository first" in str(refused.value)
    assert recorded() == before
