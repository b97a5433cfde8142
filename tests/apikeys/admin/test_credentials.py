"""Keys and tokens in the admin: seen, issued with the secret shown once, revoked."""

import datetime as dt
import html
import re
import uuid
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.bindings import LISTS, Binding
from apikeys.callers import find_caller
from apikeys.errors import CredentialsInvalid
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.scopes import Scope
from apikeys.tokens import TOKEN_PATTERN, TokenKind
from states.models import Application, Component, Environment
from tests.apikeys.admin.conftest import KEYS, TOKENS, make_key, make_token, shown
from tests.apikeys.conftest import expire
from tests.support.people import confirm, person, statements, text_of
from workloads.models import Cluster

ACTOR = Actor(name="test")
DAY = dt.timedelta(days=1)


def mint(key: ApiKey, name: str, secret: str) -> AccessToken:
    return actions.mint_access_token(
        caller=find_caller(secret),
        kind=TokenKind.PERSONAL,
        name=name,
        scopes=[Scope.STATE_READ],
        ttl=None,
        expires_at=None,
        actor=ACTOR,
    )[0]


def test_keys_are_filtered_by_status(operator: User) -> None:
    make_key(operator, "endless")
    make_key(operator, "soon", expires_at=timezone.now() + 29 * DAY)
    make_key(operator, "later", expires_at=timezone.now() + 31 * DAY)
    expire(make_key(operator, "over", expires_at=timezone.now() + DAY))
    actions.revoke_api_key(key=make_key(operator, "revoked"), actor=ACTOR)
    expire(make_key(operator, "both", expires_at=timezone.now() + DAY))
    actions.revoke_api_key(key=ApiKey.objects.get(name="both"), actor=ACTOR)
    client = person("viewer")

    by_status = {
        status: shown(client.get(KEYS, {"status": status} if status else {}))
        for status in ("", "active", "expiring", "expired", "revoked", "ended", "other")
    }

    assert by_status == {
        "": ["both", "revoked", "over", "later", "soon", "endless"],
        "active": ["later", "soon", "endless"],
        "expiring": ["soon"],
        "expired": ["over"],
        "revoked": ["both", "revoked"],
        "ended": ["both", "revoked", "over", "later", "soon", "endless"],  # not of keys
        "other": ["both", "revoked", "over", "later", "soon", "endless"],
    }


def test_tokens_end_with_their_key(operator: User) -> None:
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )
    mint(key, "minted", secret)
    make_token(operator, "issued")
    client = person("viewer")
    assert shown(client.get(TOKENS, {"status": "active"})) == ["issued", "minted"]

    actions.revoke_api_key(key=key, actor=ACTOR)

    assert shown(client.get(TOKENS, {"status": "active"})) == ["issued"]
    assert shown(client.get(TOKENS, {"status": "ended"})) == ["minted"]
    assert shown(client.get(TOKENS, {"status": "revoked"})) == []
    assert (
        "Key revoked" in text_of(client.get(TOKENS, {"status": "ended"})).rpartition("Last used")[2]
    )


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("operator", ["mine"]),
        (" someone ", ["theirs"]),
        ("nobody", []),
        ("oper", []),
        ("min", ["mine"]),
        ("THEIRS", ["theirs"]),
        ("{id}", ["mine"]),
        ("key-unknown", []),
        ("mi\0ne", ["theirs", "mine"]),  # rejected as a search term
        ("", ["theirs", "mine"]),
    ],
)
def test_search_finds_matches(term: str, found: list[str], operator: User) -> None:
    mine = make_key(operator, "mine")
    make_key(User.objects.create(username="someone"), "theirs")

    assert shown(person("viewer").get(KEYS, {"q": term.format(id=mine.pk)})) == found


def test_a_name_like_an_id_is_found(operator: User) -> None:
    make_key(operator, "key-of-ci")
    client = person("viewer")

    assert shown(client.get(KEYS, {"q": "key-of"})) == ["key-of-ci"]
    search = client.post("/admin/search/", {"text": "key-of-ci"})
    assert "key-of-ci of operator" in text_of(search)


def test_tokens_are_listed_by_key(operator: User) -> None:
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )
    minted = mint(key, "minted", secret)
    make_token(operator, "issued")
    client = person("viewer")

    assert shown(client.get(TOKENS, {"q": key.pk})) == ["minted"]
    assert shown(client.get(TOKENS, {"q": minted.pk})) == ["minted"]
    origin = f'<a href="{KEYS}{key.pk}/change/" title="{key.pk}">{key.name}</a>'
    assert origin in client.get(f"{TOKENS}{minted.pk}/change/").content.decode()


def secrets_of(credential: Any) -> list[str]:
    """Return every form that a digest could be shown in."""
    credential.refresh_from_db()
    digest = bytes(credential.digest)
    return [digest.hex(), digest.hex().upper(), repr(digest), str(list(digest))]


@pytest.mark.parametrize("page", ["", "{id}/change/", "{id}/revoke/", "?q={id}"])
def test_digests_are_not_even_read(page: str, key: ApiKey, token: AccessToken) -> None:
    client = person("administrator")
    for base, credential in ((KEYS, key), (TOKENS, token)):
        with statements() as sqls:
            answer = client.get(base + page.format(id=credential.pk))
        assert answer.status_code == 200
        # The end of a rotation's grace period is no digest.
        read = [s.replace("previous_digest_expires_at", "") for s in sqls]
        assert [s for s in read if "digest" in s] == []
        body = answer.content.decode()
        assert not any(form in body for form in secrets_of(credential))
        assert re.search(TOKEN_PATTERN, body) is None


def test_key_is_returned_without_its_secret(operator: User) -> None:
    cluster = uuid.uuid4()
    key = make_key(operator, "<b>bold</b>", binding=Binding(cluster_id=cluster))

    answer = person("viewer").get(f"{KEYS}{key.pk}/change/")

    body = answer.content.decode()
    assert "<b>bold" not in body
    text = html.unescape(text_of(answer))
    assert "<b>bold</b> History Status: Active Owner: operator Scopes: state:read" in text
    assert f"Id: {key.pk}" in text
    assert f"cluster {cluster}" in text
    assert "Revoke" not in text.partition("Status:")[0]


def form(**fields: Any) -> dict[str, Any]:
    return {
        "owner": "operator",
        "name": "new",
        "scopes": ["state:read", "state:write"],
        "expires_at": "",
        "cluster_id": "",
        "application_ids": "",
        "component_ids": "",
        "environment_ids": "",
        **fields,
    }


def issue(client: Client, path: str, **fields: Any) -> tuple[Any, str]:
    posted = client.post(f"{path}add/", form(**fields))
    assert posted.status_code == 302, posted.content
    assert re.search(TOKEN_PATTERN, posted.serialize().decode()) is None
    answer = client.get(posted["Location"])
    (secret,) = set(re.findall(TOKEN_PATTERN, answer.content.decode()))
    answer["X-Issued-By"] = posted["X-Request-ID"]
    return answer, secret


def test_operator_issues_a_token(operator: User) -> None:
    component = uuid.uuid4()

    answer, secret = issue(
        person("administrator"),
        TOKENS,
        kind="SERVICE",
        expires_at="2101-02-03T04:05",
        component_ids=f" {component}\n",
    )

    assert "no-store" in answer["Cache-Control"]
    caller = find_caller(secret)
    assert (caller.username, caller.kind) == ("operator", TokenKind.SERVICE)
    assert caller.scopes == {"state:read", "state:write"}
    assert caller.binding == Binding(component_ids=frozenset({component}))
    assert caller.expires_at == dt.datetime(2101, 2, 3, 4, 5, tzinfo=dt.UTC)
    event = AuditEvent.objects.get(action="access_token.issue", resource_id=caller.token_id)
    assert event.actor_name == "administrator-person"
    assert event.actor_id == User.objects.get(username="administrator-person").pk
    assert (event.address, event.request_id) == ("127.0.0.1", answer["X-Issued-By"])


def test_bindings_by_name(operator: User) -> None:
    component = Component.objects.create(name="network of all")
    environment = Environment.objects.create(name="production")
    cluster = Cluster.objects.create(name="prod-eu")
    client = person("administrator")
    _answer, secret = issue(
        client,
        KEYS,
        component_ids=f"network of all\n{uuid.UUID(int=7)}",
        environment_ids="production",
    )
    key = find_caller(secret)
    assert key.binding == Binding(
        component_ids=frozenset({component.pk, uuid.UUID(int=7)}),
        environment_ids=frozenset({environment.pk}),
    )
    shop = Application.objects.create(name="shop")
    _answer, secret = issue(client, KEYS, application_ids="shop")
    assert find_caller(secret).binding == Binding(application_ids=frozenset({shop.pk}))
    assert "application shop" in text_of(client.get(KEYS))
    _answer, secret = issue(client, KEYS, cluster_id=" prod-eu ")
    assert find_caller(secret).binding == Binding(cluster_id=cluster.pk)

    listed = text_of(client.get(KEYS))
    assert "cluster prod-eu" in listed
    assert f"component {uuid.UUID(int=7)} component network of all environment production" in listed
    page = client.get(f"{KEYS}{key.token_id}/change/").content.decode()
    assert f'<a href="/admin/states/component/{component.pk}/change/">network of all</a>' in page


def test_a_row_names_few_of_many_bindings(operator: User) -> None:
    ids = frozenset(uuid.UUID(int=number) for number in range(1, 6))
    key = make_key(operator, binding=Binding(component_ids=ids))
    client = person("viewer")
    assert "2 more" in text_of(client.get(KEYS))
    assert f"component {uuid.UUID(int=5)}" in text_of(client.get(f"{KEYS}{key.pk}/change/"))


def test_all_faults_are_shown_at_once(operator: User) -> None:
    answer = person("administrator").post(
        f"{KEYS}add/",
        form(owner="nobody", name="", expires_at="2020-01-01T00:00", component_ids="x\ny"),
    )
    text = text_of(answer)
    for fault in (
        "There is no active user with this name.", "This field is required.",
        "Choose a time in the future.",
        "There is no component named x.", "There is no component named y.",
    ):  # fmt: skip
        assert text.count(fault) == 1, fault


@pytest.mark.parametrize("field", LISTS)
def test_blank_binding_is_rejected(operator: User, field: str) -> None:
    answer = person("administrator").post(f"{KEYS}add/", form(**{field: " ,\n,"}))

    assert "There is no such" in text_of(answer)
    assert not ApiKey.objects.exists()


def test_the_secret_is_shown_once(operator: User) -> None:
    client = person("administrator")
    answer, secret = issue(client, KEYS)
    key = ApiKey.objects.get()
    page = f"{KEYS}{key.pk}/issued/"
    assert answer.request["PATH_INFO"] == page

    again = client.get(page, follow=True)

    assert "The secret is no longer available" in text_of(again)
    assert secret not in again.content.decode()
    assert ApiKey.objects.count() == 1


def test_new_secret_is_shown_only_to_its_issuer(operator: User) -> None:
    client = person("administrator")
    page = client.post(f"{KEYS}add/", form())["Location"]
    stored = "".join(str(session.get_decoded()) for session in Session.objects.all())
    assert re.search(TOKEN_PATTERN, stored) is None

    # Neither another person, nor the session without the browser's cookie, nor another's page.
    other = person("administrator", username="another")
    assert "The secret is no longer available" in text_of(other.get(page, follow=True))
    assert person("viewer").get(page).status_code == 403
    assert client.get(f"{KEYS}key-0/issued/").status_code == 404
    cookie = client.cookies.pop("issued_secret")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", page)
    assert "The secret is no longer available" in text_of(client.get(page, follow=True))
    client.cookies["issued_secret"] = cookie.value
    assert "The secret is no longer available" in text_of(client.get(page, follow=True))

    for broken in ("", "x", "A" * 44):
        page = client.post(f"{KEYS}add/", form())["Location"]
        client.cookies["issued_secret"] = broken
        assert "The secret is no longer available" in text_of(client.get(page, follow=True)), broken


def test_operator_creates_a_key(operator: User) -> None:
    _answer, secret = issue(person("administrator"), KEYS)

    caller = find_caller(secret)
    assert (caller.username, caller.kind) == ("operator", TokenKind.API_KEY)
    assert caller.expires_at is None


def test_a_secret_is_kept_nowhere(operator: User, capfd: pytest.CaptureFixture[str]) -> None:
    client = person("administrator")
    _answer, secret = issue(client, TOKENS, kind="PERSONAL")
    client.post(f"{TOKENS}{find_caller(secret).token_id}/revoke/")

    later = "".join(client.get(p).content.decode() for p in (TOKENS, "/admin/", f"{TOKENS}add/"))

    kept = [later, *capfd.readouterr()]
    kept += [str(session.get_decoded()) for session in Session.objects.all()]
    kept += [str(row) for model in (AuditEvent, LogEntry) for row in model.objects.values_list()]
    assert not any(secret in text or secret[10:30] in text for text in kept)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"owner": "nobody"}, "There is no active user with this name."),
        ({"owner": "gone"}, "There is no active user with this name."),
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"name": "a\0b"}, "Null characters are not allowed."),
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["all"]}, "Select a valid choice."),
        ({"expires_at": "soon"}, "Enter a valid date/time."),
        ({"expires_at": "2020-01-01T00:00"}, "Choose a time in the future."),
        ({"cluster_id": "x"}, "There is no cluster named x."),
        ({"component_ids": "x y"}, "There is no component named x y."),
        ({"component_ids": "x\n" * 1001}, "More than 1000 names and ids."),
        ({"environment_ids": "twice"}, "There are 2 environments named twice: enter an id."),
        (
            {"cluster_id": str(uuid.UUID(int=1)), "component_ids": str(uuid.UUID(int=2))},
            "Specify a cluster, or other resources, not both.",
        ),
        ({"kind": "ROOT"}, "Select a valid choice."),
        ({"kind": ""}, "This field is required."),
    ],
)
def test_errors_are_shown_beside_the_field(
    fields: dict[str, Any], message: str, operator: User
) -> None:
    User.objects.create(username="gone", is_active=False)
    for number in (1, 2):
        Environment.objects.create(name="twice", slug=f"twice-{number}")

    answer = person("administrator").post(f"{TOKENS}add/", form(**{"kind": "PERSONAL", **fields}))

    assert answer.status_code == 200
    body = html.unescape(answer.content.decode())
    row = re.search(rf'form-row errors field-({"|".join(fields)})".*?</div>', body, re.DOTALL)
    assert row is not None
    assert message in row[0]
    assert not AccessToken.objects.exists()


def test_operator_revokes_a_key(operator: User) -> None:
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )
    client = person("operator")
    confirmation = client.get(f"{KEYS}{key.pk}/revoke/")
    assert "all their tokens stop working" in text_of(confirmation)
    assert find_caller(secret).token_id == key.pk

    answer = client.post(f"{KEYS}{key.pk}/revoke/")

    assert answer["Location"] == f"{KEYS}{key.pk}/change/"
    with pytest.raises(CredentialsInvalid):
        find_caller(secret)
    assert "The API key k is revoked." in text_of(client.get(answer["Location"]))
    event = AuditEvent.objects.get(action="api_key.revoke")
    assert (event.actor_name, event.resource_id) == ("operator-person", key.pk)


def test_revoked_token_cannot_be_revoked_again(token: AccessToken) -> None:
    client = person("operator")
    client.post(f"{TOKENS}{token.pk}/revoke/")

    answer = client.post(f"{TOKENS}{token.pk}/revoke/")

    assert answer.status_code == 302
    assert "Revoke is no longer possible." in text_of(client.get(answer["Location"]))
    assert AuditEvent.objects.filter(action="access_token.revoke").count() == 1


def test_missing_key_cannot_be_revoked() -> None:
    answer = person("operator").post(f"{KEYS}key-0/revoke/")

    assert answer.status_code == 302
    assert answer["Location"] == "/admin/"


def test_history_is_the_trail(key: ApiKey) -> None:
    client = person("viewer")
    event = AuditEvent.objects.get(resource_id=key.pk)

    answer = client.get(f"{KEYS}{key.pk}/history/", follow=True)
    of_the_event = client.get(f"/admin/apikeys/auditevent/{event.pk}/history/", follow=True)

    for page in (answer, of_the_event):
        assert [e.action for e in page.context["cl"].result_list] == ["api_key.create"]


def test_a_forged_post_is_refused(key: ApiKey) -> None:
    client = person("operator", enforce_csrf_checks=True)

    answer = client.post(f"{KEYS}{key.pk}/revoke/")

    assert answer.status_code == 403
    key.refresh_from_db()
    assert key.revoked_at is None


def test_an_operator_rotates_a_key(operator: User) -> None:
    key, old = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )
    client = person("administrator")
    address = f"{KEYS}{key.pk}/"
    assert "Rotate" in text_of(client.get(f"{address}change/"))
    assert "Rotate" not in text_of(person("operator").get(f"{address}change/"))
    assert "shows it once" in text_of(client.get(f"{address}rotate/"))

    answer = confirm(client, f"{address}rotate/", {"grace_period": "3600"}, follow=True)

    secret = re.search(r"isk_\w+", answer.content.decode())
    assert secret is not None
    assert find_caller(secret[0]).token_id == find_caller(old).token_id == key.pk
    assert "no-store" in answer["Cache-Control"]
    again = client.get(f"{address}issued/", follow=True)
    assert secret[0] not in again.content.decode()
    assert "old secret works until" in text_of(again).lower()
    (event,) = AuditEvent.objects.filter(action="api_key.rotate")
    assert event.actor_name == "administrator-person"
    refused = confirm(client, f"{address}rotate/", {"grace_period": "604801"})
    assert "less than or equal to 604800" in refused.content.decode()
    assert person("operator").post(f"{address}rotate/", {"grace_period": "0"}).status_code == 403


def test_a_second_click_does_not_end_the_grace_period(operator: User) -> None:
    key = make_key(operator, "k")
    client = person("administrator")
    address = f"{KEYS}{key.pk}/rotate/"
    given = {"grace_period": "3600", "displayed": client.get(address).context["displayed"]}
    assert client.post(address, given).status_code == 302
    rotated = ApiKey.objects.get()
    assert bytes(rotated.previous_digest) == bytes(key.digest)

    refused = client.post(address, given)

    assert "The key was rotated after this page was opened." in text_of(refused)
    assert ApiKey.objects.get().revision == rotated.revision
    assert confirm(client, address, {"grace_period": "3600"}).status_code == 302


def test_a_key_that_has_ended_is_not_rotated(operator: User) -> None:
    key = make_key(operator, "k")
    actions.revoke_api_key(key=key, actor=ACTOR)
    client = person("administrator")

    assert "Rotate" not in text_of(client.get(f"{KEYS}{key.pk}/change/"))
    answer = client.post(f"{KEYS}{key.pk}/rotate/", {"grace_period": "0"}, follow=True)
    assert "no longer possible" in answer.content.decode()
