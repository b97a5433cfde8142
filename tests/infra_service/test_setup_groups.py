"""The groups of the admin, made by a command."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command

from apikeys.models import AuditEvent, User
from infra_service.console import groups
from tests.support.new_process import output_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "admin.md"


def run() -> dict[str, bool]:
    out = StringIO()
    call_command("setup_groups", "--json", stdout=out)
    changed: dict[str, bool] = json.loads(out.getvalue())["changed"]
    return changed


def permissions_of(name: str) -> set[str]:
    pairs = Group.objects.get(name=name).permissions.values_list(
        "content_type__app_label", "codename"
    )
    return {f"{app}.{codename}" for app, codename in pairs}


def test_groups_are_created_once(db: None) -> None:
    assert run() == {"viewer": True, "operator": True, "administrator": True}
    assert run() == {"viewer": False, "operator": False, "administrator": False}

    assert {name: permissions_of(name) for name in groups.wanted()} == groups.wanted()
    assert AuditEvent.objects.filter(action="group.change").count() == 3


def test_each_group_includes_the_permissions_of_the_previous_group(db: None) -> None:
    run()
    viewer, operator, administrator = map(permissions_of, ("viewer", "operator", "administrator"))

    assert viewer < operator < administrator
    assert {name.split(".")[1].split("_")[0] for name in viewer} == {"view"}
    assert operator - viewer == set(groups.OPERATOR)
    assert administrator - operator == set(groups.ADMINISTRATOR)


def test_a_process_without_pages_finds_their_models() -> None:
    """As in ``manage.py setup_groups``."""
    code = (
        "import django; django.setup(); from infra_service.console import groups\n"
        "print(*groups.wanted()['viewer'])"
    )
    found = set(output_of(code).split())

    assert found == groups.wanted()["viewer"]
    assert {"states.view_state", "webhooks.view_delivery"} <= found


def test_changed_permissions_are_restored(db: None) -> None:
    run()
    member = User.objects.create(username="member")
    viewer = Group.objects.get(name="viewer")
    viewer.user_set.add(member)
    viewer.permissions.set(Permission.objects.filter(codename="add_user"))

    assert run() == {"viewer": True, "operator": False, "administrator": False}

    assert permissions_of("viewer") == groups.wanted()["viewer"]
    assert member.groups.get() == viewer


def test_output_names_changed_groups(db: None) -> None:
    out = StringIO()
    call_command("setup_groups", stdout=out)
    call_command("setup_groups", stdout=out)

    assert out.getvalue().splitlines() == [
        *(f"{name} changed" for name in groups.wanted()),
        *(f"{name} unchanged" for name in groups.wanted()),
    ]


def test_unmigrated_database_is_reported(db: None) -> None:
    Permission.objects.filter(codename="force_unlock_state").delete()

    with pytest.raises(CommandError, match=r"there is no states\.force_unlock_state"):
        run()

    assert not Group.objects.exists()


def test_guide_lists_the_permissions_of_each_group() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", GUIDE.read_text(), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+\.\w+)`", text)) for name, text in rows}

    assert documented == {
        "viewer": set(),
        "operator": set(groups.OPERATOR),
        "administrator": set(groups.ADMINISTRATOR),
    }
