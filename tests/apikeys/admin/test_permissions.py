"""Access to each page by each group."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from tests.apikeys.admin.conftest import AUDIT_LOG, GROUPS, KEYS, TOKENS, USERS
from tests.support.people import person

NO_GROUP, VIEWER, OPERATOR, ADMINISTRATOR = "", "viewer", "operator", "administrator"
MEMBERS = (NO_GROUP, VIEWER, OPERATOR, ADMINISTRATOR)

# Path, and the statuses for a member of no group, a viewer, an operator, an administrator.
PAGES = [
    ("/admin/", (200, 200, 200, 200)),
    (KEYS, (403, 200, 200, 200)),
    (f"{KEYS}{{key}}/change/", (403, 200, 200, 200)),
    (f"{KEYS}{{key}}/revoke/", (403, 403, 200, 200)),
    (f"{KEYS}{{key}}/delete/", (403, 403, 403, 403)),
    (f"{KEYS}{{key}}/history/", (302, 302, 302, 302)),  # to the trail, which asks
    (f"{KEYS}add/", (403, 403, 403, 200)),
    (TOKENS, (403, 200, 200, 200)),
    (f"{TOKENS}{{token}}/change/", (403, 200, 200, 200)),
    (f"{TOKENS}{{token}}/revoke/", (403, 403, 200, 200)),
    (f"{TOKENS}{{token}}/delete/", (403, 403, 403, 403)),
    (f"{TOKENS}add/", (403, 403, 403, 200)),
    (AUDIT_LOG, (403, 200, 200, 200)),
    (f"{AUDIT_LOG}{{event}}/change/", (403, 200, 200, 200)),
    (f"{AUDIT_LOG}{{event}}/delete/", (403, 403, 403, 403)),
    (f"{AUDIT_LOG}add/", (403, 403, 403, 403)),
    (USERS, (403, 200, 200, 200)),
    (f"{USERS}{{user}}/change/", (403, 200, 200, 200)),
    (f"{USERS}{{user}}/password/", (403, 403, 403, 200)),
    (f"{USERS}{{user}}/delete/", (403, 403, 403, 403)),
    (f"{USERS}add/", (403, 403, 403, 200)),
    (GROUPS, (403, 200, 200, 200)),
    (f"{GROUPS}{{group}}/change/", (403, 200, 200, 200)),
    (f"{GROUPS}{{group}}/delete/", (403, 403, 403, 403)),
    (f"{GROUPS}add/", (403, 403, 403, 403)),
    ("/admin/nothing/", (404, 404, 404, 404)),
]


@pytest.fixture
def ids(key: ApiKey, token: AccessToken, operator: User) -> dict[str, Any]:
    return {
        "key": key.pk,
        "token": token.pk,
        "event": AuditEvent.objects.order_by("id")[0].pk,
        "user": operator.pk,
        "group": Group.objects.get(name="viewer").pk,
    }


@pytest.mark.parametrize(("path", "statuses"), PAGES)
def test_groups_can_view_their_pages(
    path: str, statuses: tuple[int, ...], ids: dict[str, Any]
) -> None:
    got = []
    for group in MEMBERS:
        answer = person(*filter(None, [group])).get(path.format(**ids))
        assert answer["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert answer.status_code == 302 or answer["Content-Type"].startswith("text/html")
        got.append(answer.status_code)

    assert tuple(got) == statuses


# POST requests with side effects: the same statuses, and no effect after a refusal.
ACTIONS = [
    (f"{KEYS}{{key}}/revoke/", {}, (403, 403, 302, 302)),
    (f"{TOKENS}{{token}}/revoke/", {}, (403, 403, 302, 302)),
    (f"{KEYS}{{key}}/change/", {"name": "other"}, (403, 403, 403, 403)),
    (f"{TOKENS}{{token}}/change/", {"name": "other"}, (403, 403, 403, 403)),
    (f"{AUDIT_LOG}{{event}}/change/", {"action": "other"}, (403, 403, 403, 403)),
    (f"{USERS}{{user}}/change/", {"username": "operator"}, (403, 403, 403, 302)),
    (f"{GROUPS}{{group}}/change/", {"name": "other"}, (403, 403, 403, 403)),
]


@pytest.mark.parametrize(("path", "body", "statuses"), ACTIONS)
def test_groups_can_submit_their_forms(
    path: str,
    body: dict[str, str],
    statuses: tuple[int, ...],
    ids: dict[str, Any],
) -> None:
    got = []
    for group in MEMBERS:
        ApiKey.objects.update(revoked_at=None)
        AccessToken.objects.update(revoked_at=None)
        events = AuditEvent.objects.count()
        answer = person(*filter(None, [group])).post(path.format(**ids), body)
        got.append(answer.status_code)
        assert (AuditEvent.objects.count() > events) == (answer.status_code == 302)

    assert tuple(got) == statuses


@pytest.mark.parametrize("path", sorted({path for path, _ in PAGES}))
def test_anonymous_user_is_redirected_to_the_login(
    path: str, anonymous: Client, ids: dict[str, Any]
) -> None:
    answer = anonymous.get(path.format(**ids))

    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/?next=")


def test_user_without_staff_status_is_redirected(ids: dict[str, Any]) -> None:
    answer = person("administrator", is_staff=False).get(KEYS)

    assert answer.status_code == 302


def test_superusers_may_change_groups(ids: dict[str, Any]) -> None:
    client = person(username="root", is_superuser=True)

    assert client.get(f"{GROUPS}add/").status_code == 200
    assert client.get(f"{GROUPS}{ids['group']}/delete/").status_code == 200
