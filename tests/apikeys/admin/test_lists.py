"""Every list: pages by keyset, a fixed number of queries, never a count."""

import csv
import datetime as dt
import io
import json
import re
import time
import uuid
from typing import Any

import pytest
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.audit import authorize_and_record
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.scopes import Scope
from infra_service.lib.admin import csv_export
from tests.apikeys.admin.conftest import (
    AUDIT_LOG,
    GROUPS,
    KEYS,
    TOKENS,
    USERS,
    make_key,
    make_token,
    shown,
)
from tests.support.people import person, reads_of, statements, text_of

ACTOR = Actor(name="test")


def fill(operator: User, number: int) -> None:
    for n in range(number):
        owner = User.objects.create(username=f"user-{User.objects.count():03}")
        make_token(operator, f"token {n}")
        make_key(owner, f"key {n}")
        authorize_and_record(ACTOR, "test.done", n)


@pytest.mark.parametrize(
    "path",
    [
        KEYS, f"{KEYS}?status=active", f"{KEYS}?status=expiring", f"{KEYS}?q=operator",
        TOKENS, f"{TOKENS}?status=revoked", f"{TOKENS}?status=ended", f"{TOKENS}?q=key-x",
        AUDIT_LOG, f"{AUDIT_LOG}?action=test.done", f"{AUDIT_LOG}?q=1", USERS, f"{USERS}?q=user",
        GROUPS,
    ],
)  # fmt: skip
def test_number_of_queries_is_limited(path: str, operator: User) -> None:
    client = person("viewer")
    fill(operator, 3)
    with statements() as few:
        assert client.get(path).status_code == 200
    fill(operator, 60)
    with statements() as many:
        assert client.get(path).status_code == 200

    # A page that is not full may ask once more whether the list ends there.
    # The trail looks up the names of each kind of thing that its events are about.
    assert len(few) - 1 <= len(many) <= len(few) <= (9 if path.startswith(AUDIT_LOG) else 8)
    for sql in many:
        assert "COUNT(" not in sql.upper() or '"counted"' in sql
        assert " OFFSET " not in sql.upper() or " LIMIT 1 OFFSET " in sql
        assert "digest" not in sql.replace("previous_digest_expires_at", "")
        assert sql.startswith(("SELECT", "\nWITH RECURSIVE"))
    assert any(" LIMIT 51" in sql for sql in many)


def links(answer: Any) -> dict[str, str]:
    change_list = answer.context["cl"]
    return {"next": change_list.next_url, "previous": change_list.previous_url}


def test_round_trip_preserves_the_data(operator: User) -> None:
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


@pytest.mark.parametrize("order", ["", "username"])
def test_users_newest_first_or_by_name(operator: User, order: str) -> None:
    for n in range(60):
        User.objects.create(username=f"user-{n:02}")
    client = person("viewer")

    first = client.get(USERS, {"order": order} if order else {})
    second = client.get(USERS + links(first)["next"])

    names = shown(first, r'class="field-username"[^>]*><a[^>]*>([^<]*)<')
    newest = User.objects.order_by(order or "-date_joined").values_list("username", flat=True)
    assert names == [*newest[:50]]
    assert len(shown(second, r'class="field-username"[^>]*><a[^>]*>([^<]*)<')) == 12


@pytest.mark.both
@pytest.mark.parametrize(
    "position",
    [
        "",
        "x",
        "{}",
        "[]",
        '["a","b"]',
        "[1,2,3]",
        "[-1,2,3]",
        "[0,1]",
        "[1e999]",
        '[0,"\\u0000",1]',
    ],
)
def test_invalid_position_redirects_to_the_first_page(position: str) -> None:
    """An invalid position redirects to the first page, as other invalid input in Django does."""
    answer = person("viewer").get(AUDIT_LOG, {"after": position})

    assert answer.status_code == 302
    assert answer["Location"] == f"{AUDIT_LOG}?e=1"


@pytest.mark.both
@pytest.mark.parametrize(
    ("path", "order", "value"),
    [
        (AUDIT_LOG, "", "2024-01-01"),
        (AUDIT_LOG, "", "0001-01-01T00:00:00+14:00"),
        (AUDIT_LOG, "", "9999-12-31T23:59:59-14:00"),
        ("/admin/states/state/", "serial", "9" * 20),
        ("/admin/states/state/", "serial", 10**20),
    ],
)
def test_no_position_is_an_error(db: None, path: str, order: str, value: str | int) -> None:
    position = json.dumps([0, value, str(uuid.UUID(int=0))])
    answer = person("viewer").get(path, {"after": position, "order": order})

    assert answer.status_code in (200, 302)


def test_an_unknown_position_is_a_place(operator: User) -> None:
    make_key(operator, "first")
    client = person("viewer")

    assert shown(client.get(KEYS, {"after": json.dumps([0, "key-0"])})) == []
    assert shown(client.get(KEYS, {"before": json.dumps([0, "key-0"])})) == ["first"]


@pytest.mark.parametrize(
    ("path", "lookup"),
    [
        (KEYS, "digest__startswith"),
        (KEYS, "created_by__password__startswith"),
        (KEYS, "name__contains"),
        (USERS, "password__startswith"),
        (AUDIT_LOG, "details__contains"),
    ],
)
def test_no_other_column_answers(path: str, lookup: str) -> None:
    """Any column could else be read out by trying, and searched without an index."""
    assert person("viewer").get(path, {lookup: "a"}).status_code == 400


def test_empty_list() -> None:
    answer = person("viewer").get(KEYS)

    assert "No API keys" in answer.content.decode()
    assert not ApiKey.objects.exists()
    assert not AccessToken.objects.exists()


def test_the_trail_is_newest_first() -> None:
    client = person("viewer")
    for n in range(3):
        authorize_and_record(ACTOR, "test.done", f"resource-{n}")

    rows = shown(client.get(AUDIT_LOG), r'<span class="identifier"[^>]*>(resource-\d)<')

    assert rows == ["resource-2", "resource-1", "resource-0"]


def test_events_are_filtered_by_actor_token_address_and_day(operator: User) -> None:
    client = person("viewer")
    noon = dt.datetime(2026, 2, 28, 12, tzinfo=dt.UTC)
    AuditEvent.objects.bulk_create(
        AuditEvent(
            action="test.done", actor_name=name, actor_id=actor_id, token_id=token,
            address=address,
            **Actor(name="test", at=noon + dt.timedelta(days=day)).dated("occurred_at"),
        )
        for day, name, actor_id, token, address in (
            (1, "operator", operator.pk, "tok-1", "192.0.2.1"),
            (2, "command prune_states", None, "", None),
            (3, "operator", operator.pk, "key-1", "2001:db8::1"),
        )
    )  # fmt: skip

    def days(**query: str) -> list[int]:
        answer = client.get(AUDIT_LOG, {"action": "test.done", **query})
        return [event.occurred_at.day for event in answer.context["cl"].result_list]

    assert days() == [3, 2, 1]
    assert days(actor="operator") == [3, 1]
    assert days(actor=" PRUNE ") == [2]
    assert days(token="tok-1") == [1]
    assert days(address="2001:DB8:0::1") == [3]
    assert days(since="2026-03-02") == [3, 2]
    assert days(until="2026-03-02") == [2, 1]
    assert days(since="2026-03-02", until="2026-03-02") == [2]
    for odd in ("x", "\0", "9999-12-31T", "²"):
        for name in ("action", "actor", "token", "address", "since", "until"):
            assert days(**{name: odd}) == [], (name, odd)
    assert days(until="9999-12-31") == []
    assert days(order="moment") == [1, 2, 3]
    assert days(order="-moment") == days(order="address") == [3, 2, 1]
    # The form keeps the typed values.
    body = client.get(AUDIT_LOG, {"action": "test.done", "actor": "<ada>"}).content.decode()
    assert 'name="actor" value="&lt;ada&gt;"' in body
    assert 'name="action" value="test.done"' in body
    assert body.count('name="actor"') == 1


def test_audit_log_links_to_the_named_objects(operator: User) -> None:
    key = make_key(operator, "deployments")
    event = AuditEvent.objects.get(action="api_key.create")
    AuditEvent.objects.bulk_create(
        [AuditEvent(action="api_key.use", actor_name="operator", actor_id=operator.pk,
                    token_id=key.pk, resource_id=key.pk)]
    )  # fmt: skip

    body = person("viewer").get(AUDIT_LOG).content.decode()

    assert f'<a href="{KEYS}{key.pk}/change/">deployments</a>' in body
    by_key = f'<a href="{KEYS}{key.pk}/change/" title="{key.pk}">deployments</a>'
    assert by_key in body
    assert f'<a href="{USERS}{operator.pk}/change/">operator</a>' in body
    detail = person("viewer").get(f"{AUDIT_LOG}{event.pk}/change/").content.decode()
    assert f'<a href="{KEYS}{key.pk}/change/">deployments</a>' in detail


def test_cells_are_labelled_with_their_column(operator: User) -> None:
    make_key(operator)
    body = person("operator").get(KEYS).content.decode()
    for label in ("Name", "Status", "Owner", "Scopes", "Bound to", "Expires", "Last used"):
        assert f'data-label="{label}"' in body
    assert '<td data-label="" class="action-checkbox">' in body


def test_keys_in_the_order_of_their_end(operator: User) -> None:
    now = timezone.now()
    for days in (3, 1, 2):
        make_key(operator, f"in {days}", expires_at=now + dt.timedelta(days=days))
    make_key(operator, "for ever")
    revoked = make_key(operator, "revoked", expires_at=now + dt.timedelta(hours=1))
    actions.revoke_api_key(key=revoked, actor=ACTOR)
    client = person("viewer")

    def listed(query: str) -> list[str]:
        return shown(client.get(f"{KEYS}?{query}"))

    in_time = ["in 1", "in 2", "in 3"]
    assert listed("order=expires") == [*in_time, "for ever", "revoked"]
    assert listed("order=-expires") == [*reversed(in_time), "for ever", "revoked"]
    assert listed("order=expires&status=active") == [*in_time, "for ever"]
    assert listed("order=expires&status=expiring") == in_time
    assert listed("order=expires&status=revoked") == ["revoked"]


def test_a_list_as_csv(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("=1+1", 'a "name", quoted', "<b>&amp;"):
        make_key(operator, name)
    used = dt.datetime(2026, 8, 1, 12, tzinfo=dt.UTC)
    ApiKey.objects.filter(name="<b>&amp;").update(last_used_at=used)
    actions.revoke_api_key(key=make_key(operator, "revoked"), actor=ACTOR)
    client = person("viewer")

    with statements() as queries:
        answer = client.get(KEYS, {"csv": "1", "status": "active"})

    read = [sql for sql in reads_of("apikeys_apikey", queries) if '"counted"' not in sql]
    assert len(read) == 1, "its page is not read beside it"
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="apikeys.csv"'
    header, *rows = csv.reader(io.StringIO(answer.content.decode()))
    assert header == ["name", "status", "owner", "scopes", "bound to", "expires", "last used", "id"]
    assert [row[0] for row in rows] == ["<b>&amp;", 'a "name", quoted', "'=1+1"]
    assert rows[0][1:] == [
        "Active",
        "operator",
        "state:read",
        "everywhere",
        "never",
        used.isoformat(),
        ApiKey.objects.get(name="<b>&amp;").pk,
    ]
    page = client.get(KEYS, {"status": "active"}).content.decode()
    assert "csv=1" in page
    # A row shows three of many scopes, the file all.
    assert "data-more" not in page
    scopes = sorted(Scope.values)[:5]
    many = make_key(operator, "many", scopes=scopes)
    assert 'data-more="2 more"' in client.get(KEYS).content.decode()
    assert " ".join(scopes) in client.get(KEYS, {"csv": "1"}).content.decode()
    many.delete()
    # It goes on over the pages, up to a bound.
    monkeypatch.setattr(csv_export, "_AT_ONCE", 1)
    for bound, value in (("MOST_ROWS", 3), ("_MOST_PAGES", 2)):
        monkeypatch.setattr(csv_export, bound, value)
        answer = client.get(KEYS, {"csv": "1"})
        _, *rows, last = csv.reader(io.StringIO(answer.content.decode()))
        assert (len(rows), last) == (value, [csv_export._INCOMPLETE])


FORMULAS = {
    "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)",
    "\uff1d1+1": "'\uff1d1+1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff20x": "'\uff20x",
    " =1": "' =1", "\u00a0=1": "'\u00a0=1", "\u3000\uff1d1": "'\u3000\uff1d1", "\t=1": "'\t'=1",
    "\r=1": "'\r'=1", "\n=1": "'\n'=1", "\tx": "'\tx", "\rx": "'\rx",
    "a;=1": "a;'=1", "a; =1": "a;' =1", "a\t+1": "a\t'+1", "a\r\n-1": "a\r'\n'-1",
    "a;\uff20x": "a;'\uff20x",
    "a=1": "a=1", "a, -b": "a, -b", "a;b": "a;b", "": "", "2026-08-01": "2026-08-01",
    'say "=1"': 'say "=1"', "'=1": "'=1",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_file_has_no_formula(text: str) -> None:
    assert csv_export._inert(text) == FORMULAS[text]


def test_many_line_breaks_in_a_field_take_linear_time() -> None:
    text = "x" + "\n" * 300_000 + "x"
    began = time.process_time()
    assert csv_export._inert(text) == text
    assert time.process_time() - began < 2


def test_each_field_of_a_file_is_quoted(operator: User) -> None:
    make_key(operator, "x;=HYPERLINK(1)")

    lines = person("viewer").get(KEYS, {"csv": "1"}).content.decode().splitlines()

    assert all(line.startswith('"') and line.endswith('"') for line in lines)
    assert lines[1].startswith('"x;\'=HYPERLINK(1)",')
    for line in lines:
        # Read with the separator of another country's spreadsheet, no cell begins with a sign.
        assert not any(re.match(r"\s*[=+\-@]", cell) for cell in line.split(";"))


def test_several_are_revoked_at_once(operator: User) -> None:
    keys = [make_key(operator, f"key {number}") for number in range(3)]
    actions.revoke_api_key(key=keys[0], actor=ACTOR)
    ticked = {"action": "revoke_selected", "_selected_action": [key.pk for key in keys[:2]]}
    client = person("operator")
    assert "revoke_selected" not in person("viewer").get(KEYS).content.decode()
    person("viewer").post(KEYS, {**ticked, "confirmed": "yes"})
    assert ApiKey.objects.filter(revoked_at=None).count() == 2

    confirmation = text_of(client.post(KEYS, ticked))
    assert "Revoke 1 API key " in confirmation
    assert "key 1 of operator, never used" in confirmation
    assert "key 0" not in confirmation, "it is revoked"
    assert ApiKey.objects.filter(revoked_at=None).count() == 2

    done = text_of(client.post(KEYS, {**ticked, "confirmed": "yes"}, follow=True))
    assert "The API key key 1 is revoked." in done
    assert [key.name for key in ApiKey.objects.filter(revoked_at=None)] == ["key 2"]
    assert AuditEvent.objects.filter(action="api_key.revoke", resource_id=keys[1].pk).count() == 1
    again = client.post(KEYS, {**ticked, "confirmed": "yes"}, follow=True)
    assert "All selected rows are already revoked." in text_of(again)


def test_events_are_filtered_by_action_and_resource() -> None:
    client = person("viewer")
    authorize_and_record(ACTOR, "test.one", "a")
    authorize_and_record(ACTOR, "test.two", "a")
    authorize_and_record(ACTOR, "test.two", "b")

    def found(**query: str) -> list[tuple[str, str]]:
        events = client.get(AUDIT_LOG, query).context["cl"].result_list
        return [(event.action, event.resource_id) for event in events]

    assert found(action="test.two") == [("test.two", "b"), ("test.two", "a")]
    assert found(q=" a ") == [("test.two", "a"), ("test.one", "a")]
    assert found(q="a", action="test.one") == [("test.one", "a")]
    assert found(q="nothing is called so") == []
    offered = client.get(AUDIT_LOG).context["cl"].filter_specs[0].suggestions
    assert offered == ["group.change", "test.one", "test.two"]
    assert AuditEvent.objects.filter(action="test.two").count() == 2


@pytest.mark.both
def test_an_id_with_nul_is_malformed(operator: User) -> None:
    make_key(operator)
    ticked = {"action": "revoke_selected", "_selected_action": ["a\0b"]}

    assert person("operator").post(KEYS, ticked).status_code == 400
