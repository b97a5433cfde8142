"""Every list: pages by keyset, a fixed number of queries, never a count."""

import json
from typing import Any

import pytest

from apikeys import actions
from apikeys.audit import Actor, record
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from tests.apikeys.admin.conftest import (
    GROUPS,
    KEYS,
    TOKENS,
    TRAIL,
    USERS,
    make_key,
    make_token,
    shown,
)
from tests.people import person, statements

ACTOR = Actor(name="test")


def fill(operator: User, number: int) -> None:
    for n in range(number):
        owner = User.objects.create(username=f"user-{User.objects.count():03}")
        make_token(operator, f"token {n}")
        make_key(owner, f"key {n}")
        record(ACTOR, "test.done", n)


@pytest.mark.parametrize(
    "path",
    [
        KEYS, f"{KEYS}?status=active", f"{KEYS}?status=expiring", f"{KEYS}?q=operator",
        TOKENS, f"{TOKENS}?status=revoked", f"{TOKENS}?status=ended", f"{TOKENS}?q=key-x",
        TRAIL, f"{TRAIL}?action=test.done", f"{TRAIL}?q=1", USERS, f"{USERS}?q=user", GROUPS,
    ],
)  # fmt: skip
def test_queries(path: str, operator: User) -> None:
    client = person("viewer")
    fill(operator, 3)
    with statements() as few:
        assert client.get(path).status_code == 200
    fill(operator, 60)
    with statements() as many:
        assert client.get(path).status_code == 200

    # A page that is not full may ask once more whether the list ends there.
    assert len(few) - 1 <= len(many) <= len(few) <= 8
    for sql in many:
        assert "COUNT(" not in sql.upper() or '"counted"' in sql
        assert " OFFSET " not in sql.upper() or " LIMIT 1 OFFSET " in sql
        assert "digest" not in sql.replace("previous_digest_expires_at", "")
        assert sql.startswith(("SELECT", "\nWITH RECURSIVE"))
    assert any(" LIMIT 51" in sql for sql in many)


def links(answer: Any) -> dict[str, str]:
    change_list = answer.context["cl"]
    return {"next": change_list.next_url, "previous": change_list.previous_url}


def test_there_and_back(operator: User) -> None:
    names = [make_key(operator, f"key {n:03}").name for n in range(120)][::-1]
    client = person("viewer")

    first = client.get(KEYS)
    second = client.get(KEYS + links(first)["next"])
    third = client.get(KEYS + links(second)["next"])

    assert [shown(page) for page in (first, second, third)] == [
        names[:50],
        names[50:100],
        names[100:],
    ]
    assert links(first)["previous"] is None
    assert links(third)["next"] is None
    back = client.get(KEYS + links(third)["previous"])
    assert shown(back) == names[50:100]
    again = client.get(KEYS + links(back)["previous"])
    assert shown(again) == names[:50]
    assert links(again)["previous"] is None
    assert 'rel="next"' in first.content.decode()
    assert "50 API keys on this page" in first.content.decode()


def test_a_page_keeps_filter_and_search(operator: User) -> None:
    for n in range(60):
        make_key(operator, f"active {n}")
        actions.revoke_api_key(key=make_key(operator, f"revoked {n}"), actor=ACTOR)
    client = person("viewer")

    first = client.get(KEYS, {"status": "revoked", "q": "operator"})
    second = client.get(KEYS + links(first)["next"])

    assert {name.split()[0] for name in shown(first) + shown(second)} == {"revoked"}
    assert len(shown(first) + shown(second)) == 60
    # A filter begins at the first page again.
    assert "after=" not in second.context["cl"].get_query_string({"status": "active"})
    assert "status=revoked" in second.context["cl"].without_search_url


def test_a_list_in_the_order_of_names(operator: User) -> None:
    for n in range(60):
        User.objects.create(username=f"user-{n:02}")
    client = person("viewer")

    first = client.get(USERS)
    second = client.get(USERS + links(first)["next"])

    names = shown(first, r'class="field-username"[^>]*><a[^>]*>([^<]*)<')
    assert names == sorted(names)
    assert len(names) == 50
    assert len(shown(second, r'class="field-username"[^>]*><a[^>]*>([^<]*)<')) == 12


@pytest.mark.parametrize("position", ["", "x", "{}", "[]", '["a","b"]', "[1e999]", '["\\u0000"]'])
def test_what_is_no_position(position: str) -> None:
    """As Django does with what it cannot read, it goes to the beginning."""
    answer = person("viewer").get(TRAIL, {"after": position})

    assert answer.status_code == 302
    assert answer["Location"] == f"{TRAIL}?e=1"


def test_an_unknown_position_is_a_place(operator: User) -> None:
    make_key(operator, "first")
    client = person("viewer")

    assert shown(client.get(KEYS, {"after": json.dumps(["key-0"])})) == []
    assert shown(client.get(KEYS, {"before": json.dumps(["key-0"])})) == ["first"]


@pytest.mark.parametrize(
    ("path", "lookup"),
    [
        (KEYS, "digest__startswith"),
        (KEYS, "created_by__password__startswith"),
        (KEYS, "name__contains"),
        (USERS, "password__startswith"),
        (TRAIL, "details__contains"),
    ],
)
def test_no_other_column_answers(path: str, lookup: str) -> None:
    """Any column could else be read out by trying, and searched without an index."""
    assert person("viewer").get(path, {lookup: "a"}).status_code == 400


def test_nothing_is_there() -> None:
    answer = person("viewer").get(KEYS)

    assert "No API keys" in answer.content.decode()
    assert not ApiKey.objects.exists()
    assert not AccessToken.objects.exists()


def test_the_trail_is_newest_first() -> None:
    client = person("viewer")
    for n in range(3):
        record(ACTOR, "test.done", f"resource-{n}")

    rows = shown(client.get(TRAIL), r'<span class="identifier">(resource-\d)<')

    assert rows == ["resource-2", "resource-1", "resource-0"]


def test_the_trail_by_action_and_resource() -> None:
    client = person("viewer")
    record(ACTOR, "test.one", "a")
    record(ACTOR, "test.two", "a")
    record(ACTOR, "test.two", "b")

    def found(**query: str) -> list[tuple[str, str]]:
        events = client.get(TRAIL, query).context["cl"].result_list
        return [(event.action, event.resource_id) for event in events]

    assert found(action="test.two") == [("test.two", "b"), ("test.two", "a")]
    assert found(q=" a ") == [("test.two", "a"), ("test.one", "a")]
    assert found(q="a", action="test.one") == [("test.one", "a")]
    assert found(q="A") == []
    choices = [c["display"] for c in client.get(TRAIL).context["cl"].filter_specs[0].choices(
        client.get(TRAIL).context["cl"])]  # fmt: skip
    assert choices == ["All", "group.change", "test.one", "test.two"]
    assert AuditEvent.objects.filter(action="test.two").count() == 2
