"""Users and groups: a user cannot grant permissions that they lack."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from apikeys.admin import person_credentials
from apikeys.models import AuditEvent, User
from tests.apikeys.admin.conftest import GROUPS, USERS, make_token
from tests.support.people import person, text_of

PASSWORD = "correct horse battery staple"


def change(client: Client, user: User, **fields: Any) -> Any:
    given = {"username": user.username, "is_active": "on", **fields}
    answer = client.post(f"{USERS}{user.pk}/change/", given)
    user.refresh_from_db()
    return answer


def groups_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def ids(*names: str) -> list[int]:
    return list(Group.objects.filter(name__in=names).values_list("pk", flat=True))


def test_administrator_creates_a_user_with_access_to_the_admin() -> None:
    administrator = person("administrator")
    given = {"username": "new", "usable_password": "true"}
    given |= {"password1": PASSWORD, "password2": PASSWORD}

    answer = administrator.post(f"{USERS}add/", given)

    new = User.objects.get(username="new")
    assert answer["Location"] == f"{USERS}{new.pk}/change/"
    assert (new.is_staff, new.is_superuser) == (False, False)
    change(administrator, new, is_staff="on", groups=ids("viewer"))
    assert groups_of(new) == {"viewer"}
    visitor = Client()
    assert visitor.login(username="new", password=PASSWORD)
    assert visitor.get(USERS).status_code == 200
    events = AuditEvent.objects.filter(resource_id=str(new.pk)).order_by("id")
    assert [event.action for event in events] == [
        "user.password", "user.create", "user.change", "user.login",
    ]  # fmt: skip
    assert PASSWORD not in str(list(events.values_list()))
    assert events[2].details["changes"] == [{"changed": {"fields": [("Admin access"), "Groups"]}}]


def test_group_with_more_permissions_cannot_be_assigned(operator: User) -> None:
    more = Group.objects.create(name="more")
    more.permissions.add(Permission.objects.get(codename="delete_group"))
    administrator = person("administrator")

    answer = change(administrator, operator, groups=ids("more"))

    assert answer.status_code == 200
    message = "You cannot assign the group more, because it has permissions that you lack."
    assert message in text_of(answer)
    assert groups_of(operator) == set()
    assert change(administrator, operator, groups=ids("administrator")).status_code == 302
    assert groups_of(operator) == {"administrator"}


def test_only_superusers_make_superusers(operator: User) -> None:
    change(person("administrator"), operator, is_superuser="on")
    assert not operator.is_superuser

    change(person(username="root", is_superuser=True), operator, is_superuser="on")
    assert operator.is_superuser


@pytest.mark.parametrize("rights", [{"is_active": ""}, {"is_superuser": ""}])
def test_the_last_active_superuser_keeps_the_rights(rights: dict[str, str]) -> None:
    root = person(username="root", is_superuser=True)
    last = User.objects.get(username="root")
    kept = {"is_staff": "on", "is_superuser": "on"}

    answer = change(root, last, **kept | rights)

    assert "root is the last active superuser." in text_of(answer)
    assert (last.is_active, last.is_superuser) == (True, True)
    person(username="second", is_superuser=True)
    assert change(root, last, **kept | rights).status_code == 302
    assert (last.is_active, last.is_superuser) != (True, True)


@pytest.mark.parametrize("page", ["change", "password"])
def test_user_with_more_permissions_cannot_be_changed(page: str, operator: User) -> None:
    operator.is_superuser = True
    operator.set_password(PASSWORD)
    operator.save()

    answer = person("administrator").post(
        f"{USERS}{operator.pk}/{page}/",
        {"username": "taken", "password1": "x" * 20, "password2": "x" * 20},
    )

    assert answer.status_code == 403
    operator.refresh_from_db()
    assert operator.username == "operator"
    assert operator.check_password(PASSWORD)


def test_the_own_password_requires_the_current_password() -> None:
    """A stolen session could else set the password, and with it add a second factor."""
    administrator = person("administrator")
    own = User.objects.get(username="administrator-person")
    page = administrator.get(f"{USERS}{own.pk}/change/")
    assert "Change your password" in text_of(page)

    given = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    answer = administrator.post(f"{USERS}{own.pk}/password/", given)

    assert answer["Location"] == "/admin/password_change/"
    own.refresh_from_db()
    assert not own.check_password(PASSWORD)


def test_administrator_sets_a_password(operator: User) -> None:
    administrator = person("administrator")
    page = administrator.get(f"{USERS}{operator.pk}/change/")
    assert "Set the password" in text_of(page)

    given = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    answer = administrator.post(f"{USERS}{operator.pk}/password/", given)

    assert answer.status_code == 302
    operator.refresh_from_db()
    assert operator.check_password(PASSWORD)
    assert AuditEvent.objects.get(action="user.change").resource_id == str(operator.pk)


def test_viewers_see_no_hash(operator: User) -> None:
    operator.set_password(PASSWORD)
    operator.save()

    for group in ("viewer", "administrator"):
        page = person(group).get(f"{USERS}{operator.pk}/change/").content.decode()
        _algorithm, _iterations, salt, digest = operator.password.split("$")
        assert salt not in page
        assert digest not in page
        assert "pbkdf2" not in page


def test_viewers_see_the_status_instead_of_its_boxes(operator: User) -> None:
    text = text_of(person("viewer").get(f"{USERS}{operator.pk}/change/"))

    assert "Status: Active Username: operator" in text
    assert "Superuser status" not in text


def test_inactive_user_is_refused(operator: User) -> None:
    """Their tokens end with them; nothing of theirs is deleted."""
    token = make_token(operator)
    given = {"username": "operator"}

    person("administrator").post(f"{USERS}{operator.pk}/change/", given)

    operator.refresh_from_db()
    assert not operator.is_active
    token.refresh_from_db()


def test_search_finds_matches(operator: User) -> None:
    client = person("viewer")

    def found(term: str) -> list[str]:
        users = client.get(USERS, {"q": term}).context["cl"].result_list
        return [user.username for user in users]

    assert found("oper") == found(" operator ") == ["operator"]
    assert found("perator") == []


def test_administrator_changes_a_group() -> None:
    root = person(username="root", is_superuser=True)
    viewer = Group.objects.get(name="viewer")

    answer = root.post(f"{GROUPS}{viewer.pk}/change/", {"name": "viewer", "permissions": []})

    assert answer.status_code == 302
    assert not viewer.permissions.exists()
    events = AuditEvent.objects.filter(action="group.change").order_by("-id")
    assert events[0].actor_name == "root"


def test_make_and_delete_a_group() -> None:
    root = person(username="root", is_superuser=True)
    root.post(f"{GROUPS}add/", {"name": "auditors", "permissions": []})
    group = Group.objects.get(name="auditors")

    root.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"})

    assert not Group.objects.filter(name="auditors").exists()
    events = AuditEvent.objects.filter(resource_id=str(group.pk)).order_by("id")
    assert [event.action for event in events] == ["group.create", "group.delete"]
    assert [event.details for event in events] == [
        {"name": "auditors", "changes": [{"added": {}}]},
        {"name": "auditors", "changes": []},
    ]


def test_a_page_shows_the_keys_and_tokens(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    make_token(operator)
    page = f"{USERS}{operator.pk}/change/"
    shown = text_of(person("viewer").get(page))
    assert "Access tokens Name Status Expires Last used Created" in shown
    assert "No API keys." in shown

    monkeypatch.setattr(person_credentials, "SHOWN", 1)
    make_token(operator)
    assert f"All access tokens of {operator.username}" in text_of(person("viewer").get(page))

    only_users = Group.objects.create(name="only users")
    only_users.permissions.add(Permission.objects.get(codename="view_user"))
    assert "Access tokens Name" not in text_of(person("only users").get(page))
