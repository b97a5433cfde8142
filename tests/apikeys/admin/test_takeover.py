"""Users cannot take over accounts with more permissions or grant permissions that they lack.

This includes deactivated accounts.
"""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import Client, RequestFactory

from apikeys.models import AccessToken, ApiKey, AuditEvent, Issuer, TrustPolicy, User
from infra_service.console import groups
from tests.apikeys.admin.conftest import GROUPS, USERS, make_key, make_token
from tests.support.people import log_in, person, text_of

PASSWORD = "correct horse battery staple"


def holder(*codenames: str) -> Client:
    """Return the browser of a user with exactly these permissions."""
    client = person(username="holder")
    permissions = Permission.objects.filter(codename__in=codenames)
    assert len(permissions) == len(codenames)
    User.objects.get(username="holder").user_permissions.set(permissions)
    return client


@pytest.fixture
def former() -> User:
    """A deactivated administrator."""
    user = User.objects.create(username="former", is_staff=True, is_active=False)
    user.groups.add(Group.objects.get(name="administrator"))
    user.set_password(PASSWORD)
    user.save()
    return user


def more_by(user: User, how: str) -> None:
    user.groups.clear()
    if how == "superuser":
        user.is_superuser = True
        user.save()
    elif how == "own":
        user.user_permissions.add(Permission.objects.get(codename="delete_group"))
    else:
        user.groups.add(Group.objects.get(name="administrator"))


@pytest.mark.parametrize("how", ["superuser", "own", "group"])
@pytest.mark.parametrize("page", ["change", "password"])
def test_deactivated_user_with_more_permissions_cannot_be_changed(
    page: str, how: str, former: User
) -> None:
    more_by(former, how)

    answer = holder("change_user", "view_user").post(
        f"{USERS}{former.pk}/{page}/",
        {
            "username": "former", "is_active": "on", "is_staff": "on", "email": "mine@example.com",
            "password1": "x" * 20, "password2": "x" * 20, "usable_password": "true",
        },
    )  # fmt: skip

    assert answer.status_code == 403
    former.refresh_from_db()
    assert (former.is_active, former.email) == (False, "")
    assert former.check_password(PASSWORD)


def test_user_with_equal_permissions_can_reactivate(former: User) -> None:
    person("administrator").post(
        f"{USERS}{former.pk}/change/", {"username": "former", "is_active": "on", "groups": []}
    )

    former.refresh_from_db()
    assert former.is_active


def change_group(client: Client, group: Group, *codenames: str) -> Any:
    chosen = Permission.objects.filter(codename__in=codenames).values_list("pk", flat=True)
    answer = client.post(
        f"{GROUPS}{group.pk}/change/", {"name": group.name, "permissions": list(chosen)}
    )
    group.refresh_from_db()
    return answer


def codenames(group: Group) -> set[str]:
    return set(group.permissions.values_list("codename", flat=True))


def test_group_cannot_get_permissions_that_the_user_lacks() -> None:
    """Also if the user is a member of the group."""
    client = holder("change_group", "view_user")
    own = Group.objects.create(name="own")
    User.objects.get(username="holder").groups.add(own)

    answer = change_group(client, own, "view_user", "change_user")

    assert "You cannot grant permissions that you do not have." in text_of(answer)
    assert codenames(own) == set()
    assert change_group(client, own, "view_user").status_code == 302
    assert codenames(own) == {"view_user"}


def test_the_group_form_offers_only_permissions_of_the_user() -> None:
    client = holder("change_group", "view_user")
    own = Group.objects.create(name="own")

    form = client.get(f"{GROUPS}{own.pk}/change/").context["adminform"].form

    offered = form.fields["permissions"].queryset
    assert {permission.codename for permission in offered} == {"change_group", "view_user"}


def test_the_group_form_omits_internal_models() -> None:
    client = person(username="root", is_superuser=True)

    form = client.get(f"{GROUPS}add/").context["adminform"].form

    offered = form.fields["permissions"].queryset.values_list("codename", flat=True)
    wanted = groups.ADMINISTRATOR + groups.OPERATOR
    assert {name.partition(".")[2] for name in wanted} <= set(offered)
    assert {"view_change", "view_housekeepingpart", "delete_group"} <= set(offered)
    assert not {"view_statecount", "add_resourcedigest", "view_permission"} & set(offered)


def test_a_group_keeps_permissions_that_the_form_hides() -> None:
    client = person(username="root", is_superuser=True)
    own = Group.objects.create(name="own")
    own.permissions.set(Permission.objects.filter(codename__in=("add_session", "view_user")))
    page = client.get(f"{GROUPS}{own.pk}/change/")
    offered = page.context["adminform"].form.fields["permissions"].queryset
    assert not offered.filter(codename="add_session").exists()

    assert change_group(client, own, "change_user").status_code == 302

    assert codenames(own) == {"add_session", "change_user"}
    assert change_group(client, own, "add_session").status_code == 200
    assert codenames(own) == {"add_session", "change_user"}


def test_saving_an_unchanged_group_records_no_change() -> None:
    client = person(username="root", is_superuser=True)
    own = Group.objects.create(name="own")
    own.permissions.set(Permission.objects.filter(codename__in=("add_session", "view_user")))

    assert change_group(client, own, "view_user").status_code == 302

    event = AuditEvent.objects.filter(action="group.change", resource_id=own.pk).get()
    assert event.details["changes"] == []


def test_a_group_that_may_do_more_is_not_changed() -> None:
    viewer = Group.objects.get(name="viewer")
    before = codenames(viewer)

    answer = change_group(holder("change_group", "view_user"), viewer)

    assert answer.status_code == 403
    assert codenames(viewer) == before


def test_group_with_more_permissions_cannot_be_created() -> None:
    client = holder("add_group", "view_user")
    more = Permission.objects.get(codename="change_user").pk

    answer = client.post(f"{GROUPS}add/", {"name": "mine", "permissions": [more]})

    assert answer.status_code == 200
    assert not Group.objects.filter(name="mine").exists()


def test_fields_outside_the_form_are_ignored(operator: User) -> None:
    """The permissions, the password hash and the superuser status cannot be posted."""
    all_of_them = list(Permission.objects.values_list("pk", flat=True))

    person("administrator").post(
        f"{USERS}{operator.pk}/change/",
        {
            "username": "operator", "is_active": "on", "is_superuser": "on", "password": "x",
            "user_permissions": all_of_them, "sessions_end": "2020-01-01",
        },
    )  # fmt: skip

    operator.refresh_from_db()
    assert (operator.is_superuser, operator.password) == (False, "")
    assert not operator.user_permissions.exists()


# --- Reactivation ---------------------------------------------------------------------------------


@pytest.fixture
def inactive(operator: User) -> User:
    """A deactivated user with two valid keys, a valid token and a revoked key."""
    make_key(operator), make_key(operator), make_token(operator)
    ApiKey.objects.revoke(make_key(operator).pk)
    operator.is_active = False
    operator.save()
    return operator


def test_form_lists_credentials_that_reactivation_restores(inactive: User) -> None:
    page = person("administrator").get(f"{USERS}{inactive.pk}/change/")

    assert "2 API keys and 1 access token will work again" in text_of(page)
    box = page.context["adminform"].form["revoke_credentials"]
    assert "checked" in str(box)
    # A user without the permission to change it does not see the question.
    assert "work again" not in text_of(person("viewer").get(f"{USERS}{inactive.pk}/change/"))


@pytest.mark.parametrize(
    ("keys", "tokens", "what"),
    [
        (1, 0, "1 API key"),
        (2, 1, "2 API keys and 1 access token"),
        (0, 2, "2 access tokens"),
    ],
)
def test_the_form_counts(keys: int, tokens: int, what: str, operator: User) -> None:
    for make, times in ((make_key, keys), (make_token, tokens)):
        for _ in range(times):
            make(operator)
    User.objects.filter(pk=operator.pk).update(is_active=False)

    page = person("administrator").get(f"{USERS}{operator.pk}/change/")

    assert f"active, {what} will work again." in text_of(page)


def test_trust_policies_can_be_disabled_on_reactivation(operator: User) -> None:
    issuer = Issuer.objects.create(kind="CUSTOM", url="https://ci.example.com", audience="us")
    policy = TrustPolicy.objects.create(
        issuer=issuer, owner=operator, name="p", scopes=["state:read"],
        conditions=[{"claim": "repository_id", "equals": "1"}],
    )  # fmt: skip
    User.objects.filter(pk=operator.pk).update(is_active=False)
    administrator, path = person("administrator"), f"{USERS}{operator.pk}/change/"
    page = text_of(administrator.get(path))
    assert "If you make this user active, 1 trust policy will work again." in page

    given = {"username": "operator", "is_active": "on", "revoke_credentials": "on"}
    administrator.post(path, given)

    policy.refresh_from_db()
    assert policy.disabled_at is not None
    assert AuditEvent.objects.filter(action="trust_policy.disable", resource_id=policy.pk).exists()


def test_revocation_includes_keys_made_by_the_users_keys(inactive: User) -> None:
    maker = ApiKey.objects.active().first()
    token = AccessToken.objects.active().get()
    assert maker is not None
    for child in (make_key(inactive), make_key(inactive)):
        ApiKey.objects.filter(pk=child.pk).update(maker=maker)
    # Revocation follows the maker of a key, not its owner.
    elsewhere = make_key(User.objects.create(username="another"))
    ApiKey.objects.filter(pk=elsewhere.pk).update(maker=maker)
    working = {*ApiKey.objects.active().values_list("pk", flat=True), token.pk}

    given = {"username": "operator", "is_active": "on", "revoke_credentials": "on"}
    person("administrator").post(f"{USERS}{inactive.pk}/change/", given)

    events = AuditEvent.objects.filter(action__in=("api_key.revoke", "access_token.revoke"))
    found = list(events.values_list("resource_id", "actor_name"))
    assert sorted(found) == sorted((pk, "administrator-person") for pk in working)
    assert not ApiKey.objects.active().exists()


@pytest.mark.parametrize(("ticked", "left"), [({"revoke_credentials": "on"}, 0), ({}, 3)])
def test_they_are_revoked_unless_they_shall_live(
    ticked: dict[str, str], left: int, inactive: User
) -> None:
    given = {"username": "operator", "is_active": "on", **ticked}

    person("administrator").post(f"{USERS}{inactive.pk}/change/", given)

    inactive.refresh_from_db()
    assert inactive.is_active
    assert ApiKey.objects.active().count() + AccessToken.objects.active().count() == left


def test_credentials_are_not_revoked_while_the_user_stays_inactive(inactive: User) -> None:
    given = {"username": "renamed", "revoke_credentials": "on"}

    person("administrator").post(f"{USERS}{inactive.pk}/change/", given)

    inactive.refresh_from_db()
    assert inactive.username == "renamed"
    assert ApiKey.objects.active().count() == 2


def test_question_is_omitted_without_credentials(operator: User) -> None:
    for is_active in (True, False):
        User.objects.filter(pk=operator.pk).update(is_active=is_active)
        page = person("administrator").get(f"{USERS}{operator.pk}/change/")
        assert "revoke_credentials" not in page.content.decode()


def test_a_session_does_not_outlive_its_user_being_inactive(settings: Any) -> None:
    session = person("viewer")
    viewer = User.objects.get(username="viewer-person")
    assert session.get(USERS).status_code == 200
    administrator = person("administrator")

    for active in ({}, {"is_active": "on"}):
        given = {"username": viewer.username, "is_staff": "on", **active}
        groups_of = list(viewer.groups.values_list("pk", flat=True))
        url = f"{USERS}{viewer.pk}/change/"
        assert administrator.post(url, {**given, "groups": groups_of}).status_code == 302
        assert session.get(USERS).status_code == 302  # to the log-in

    log_in(session, User.objects.get(pk=viewer.pk))
    assert session.get(USERS).status_code == 200
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another" * 8, [former]
    assert session.get(USERS).status_code == 200


def test_part_of_a_user_is_saved_with_the_end_of_the_sessions(operator: User) -> None:
    operator.is_active = False
    operator.save(update_fields=["is_active"])

    operator.refresh_from_db()
    assert operator.sessions_end is not None


# --- All pages ------------------------------------------------------------------------------------


def test_revocation_is_the_only_bulk_action() -> None:
    """Django's admin offers bulk deletion by default."""
    request = RequestFactory().get("/")
    request.user = User(username="root", is_superuser=True)

    offered = {
        model.__name__: list(of.get_actions(request)) for model, of in admin.site._registry.items()
    }
    assert {name: actions for name, actions in offered.items() if actions} == {
        "ApiKey": ["revoke_selected"],
        "AccessToken": ["revoke_selected"],
    }
