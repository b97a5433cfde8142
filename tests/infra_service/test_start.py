"""Modules that a command or a worker loads at startup."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, SystemCheckError
from django.db import connection

from infra_service.lib.commandline.base import ServiceCommand
from states.admin.states import StateAdmin
from tests.support.new_process import output_of
from tests.support.server import LiveServer, running

pytestmark = pytest.mark.both

# Each takes tens of milliseconds: object stores, Redis, Kubernetes, the filter language, views, the
# OpenAPI document, the admin.
NEEDLESS = {
    "botocore", "redis", "kubernetes", "parsimonious", "rest_framework.views",
    "drf_spectacular.utils", "infra_service.urls", "apikeys.admin", "states.admin",
}  # fmt: skip
# Allowed only with PostgreSQL.
POSTGRESQL = {"psycopg", "psycopg_pool"}

SCRIPT = """
import json, sys
import django
django.setup()
from django.core.checks import run_checks
from django.core.management import get_commands, load_command_class
from infra_service.lib.commandline.base import ServiceCommand

problems = run_checks(tags=ServiceCommand.requires_system_checks)
for_all = set(sys.modules)
for name in sys.argv[1:]:
    load_command_class(get_commands()[name], name)
for_commands = set(sys.modules)

import infra_service.wsgi
from infra_service.lib.api import limits
made = limits._limiter.cache_info().currsize
print(json.dumps([list(map(str, problems)), [*for_all], [*for_commands], [*sys.modules], made]))
"""


# Commands of Django that run no checks, or the checks that Django chooses.
DJANGOS = {"changepassword", "createsuperuser"}


def our_commands() -> dict[str, BaseCommand]:
    return {
        name: load_command_class(app, name)
        for name, app in get_commands().items()
        if app in {"apikeys", "infra_service", "states", "workloads"} and name not in DJANGOS
    }


def test_only_workers_load_all_modules() -> None:
    loaded = json.loads(output_of(SCRIPT, *our_commands()))
    problems, for_all, for_commands, for_worker, limiters = loaded

    assert problems == []
    assert NEEDLESS & set(for_commands) == set()
    assert POSTGRESQL & set(for_all) == (POSTGRESQL if connection.vendor == "postgresql" else set())
    assert {"infra_service.urls", "states.admin", "states.api.backend"} <= set(for_worker)
    assert limiters == 1


def test_each_command_checks_the_settings(settings: Any) -> None:
    settings.STATE_ENCRYPTION_KEYS = []

    assert [name for name, of in our_commands().items() if not isinstance(of, ServiceCommand)] == []
    with pytest.raises(SystemCheckError, match=r"states\.E001"):
        call_command("prune_states", skip_checks=False)


def test_pages_of_the_admin_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateAdmin, "list_display", ("nonsense",))

    assert [error.id for error in run_checks(tags=["admin"])] == ["admin.E108"]


@pytest.mark.parametrize(
    ("key", "is_strong"),
    [
        ("", False),
        ("0123456789" * 4 + "012345678", False),
        ("0123456789" * 5, True),
        ("abcd" * 20, False),
        ("django-insecure-" + "0123456789" * 5, False),
    ],
)
def test_weak_secret_key_is_an_error(settings: Any, key: str, is_strong: bool) -> None:
    settings.SECRET_KEY = key

    found = [problem.id for problem in run_checks(tags=["security"])]

    assert found == ([] if is_strong else ["infra_service.E013"])


def test_commands_run_with_a_weak_secret_key(settings: Any) -> None:
    """A token can be revoked at any time."""
    settings.SECRET_KEY = "weak"

    assert run_checks(tags=ServiceCommand.requires_system_checks) == []


class WithoutErrorOutput(LiveServer):
    """A server whose parent process closed its standard error."""

    launcher = ("sh", "-c", 'exec "$@" 2>&-', "sh")


def test_server_starts_with_a_closed_error_output(tmp_path: Path) -> None:
    server = WithoutErrorOutput(tmp_path)
    with running(server):
        for pid in (server.pid, *server.workers()):
            # No socket or file of the service has the descriptor of standard error.
            assert str(Path(f"/proc/{pid}/fd/2").readlink()) == "/dev/null"
