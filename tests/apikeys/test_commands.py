"""manage.py seed_apikeys, revoke_apikey, issue_token and list_credentials."""

import datetime as dt
import io
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from apikeys import actions, tokens
from apikeys.actions import first_operator
from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from states.models import Application, Component, Environment
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.conftest import ClientWith
from workloads.models import Cluster


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


SEED = ("seed_apikeys", "--user", "operator", "--name", "ci", "--scopes", "state:read,apikey:write")


def test_seed_is_idempotent(operator: User) -> None:
    (first,) = json.loads(run(*SEED, "--json"))["api_keys"]
    (second,) = json.loads(run(*SEED, "--json"))["api_keys"]

    key = ApiKey.objects.get()
    assert first == {
        "user": "operator", "name": "ci", "id": key.pk, "created": True, "secret": first["secret"],
        "differs": {}, "unusable_reason": None,
    }  # fmt: skip
    assert second == {**first, "created": False, "secret": None}
    assert key.scopes == ["apikey:write", "state:read"]
    assert KeyClient(first["secret"]).get("/v1/whoami").status_code == 200
    (event,) = AuditEvent.objects.filter(action="api_key.create")
    assert (event.actor_name, event.actor_id) == ("command seed_apikeys", None)


def described(component: str) -> Any:
    """Return a binding to a single component as the API shows it."""
    return Binding(component_ids=frozenset({uuid.UUID(component)})).described()


def test_seed_prints_a_text_result(operator: User) -> None:
    user, name, key_id, secret = run(*SEED).split()

    assert (user, name, key_id) == ("operator", "ci", ApiKey.objects.get().pk)
    assert tokens.kind_of(secret) is tokens.TokenKind.API_KEY
    assert run(*SEED) == f"operator ci {key_id} exists\n"


def test_seed_reports_differences_of_an_existing_key(operator: User) -> None:
    run(*SEED)
    component = str(uuid.uuid4())
    other = (*SEED[:-1], "state:read", "--expires-at", "2999-01-01T01:00:00+01:00")

    (outcome,) = json.loads(run(*other, "--component", component, "--json"))["api_keys"]

    assert (outcome["created"], outcome["secret"]) == (False, None)
    assert outcome["differs"] == {
        "scopes": {"is": ["apikey:write", "state:read"], "asked": ["state:read"]},
        "expires_at": {"is": None, "asked": "2999-01-01T00:00:00+00:00"},
        "binding": {
            "is": None,
            "asked": described(component),
        },
    }
    assert run(*SEED[:-1], "state:read") == (
        f"operator ci {outcome['id']} exists; "
        'scopes is ["apikey:write", "state:read"], not ["state:read"]\n'
    )
    assert ApiKey.objects.get().scopes == ["apikey:write", "state:read"]


def test_seed_replaces_a_revoked_key(operator: User) -> None:
    run(*SEED)
    ApiKey.objects.revoke(ApiKey.objects.get().pk)

    run(*SEED)

    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def seed_file(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    return ("seed_apikeys", "--file", str(path), "--json")


def test_keys_are_seeded_from_a_file(operator: User, tmp_path: Path) -> None:
    component = uuid.uuid4()
    command = seed_file(
        tmp_path,
        f"""
        [[api_keys]]
        user = "ci"
        name = "deploy"
        scopes = ["state:read", "state:write"]
        expires_at = 2999-01-01T00:00:00Z
        binding.component_ids = ["{component}"]

        [[api_keys]]
        user = "operator"
        name = "all"
        scopes = ["state:read"]
        """,
    )
    with pytest.raises(CommandError, match="there is no active user 'ci'"):
        run(*command)
    assert not ApiKey.objects.exists()

    outcomes = json.loads(run(*command, "--create-users"))["api_keys"]

    assert [(o["user"], o["name"], o["created"]) for o in outcomes] == [
        ("ci", "deploy", True), ("operator", "all", True),
    ]  # fmt: skip
    deploy = ApiKey.objects.get(name="deploy")
    assert deploy.expires_at is not None
    assert deploy.expires_at.year == 2999
    assert deploy.binding == Binding(component_ids=frozenset({component}))
    assert not User.objects.get(username="ci").has_usable_password()


BAD_FILES = {
    "no TOML": ("[[", "keys.toml: "),
    "no tables": ("x = 1", r"there are no \[\[api_keys\]\] tables"),
    "no list": ("api_keys = 1", r"there are no \[\[api_keys\]\] tables"),
    "no objects": ("api_keys = [1]", r"there are no \[\[api_keys\]\] tables"),
    "no user": ("[[api_keys]]\nname = 'x'\nscopes = ['state:read']", "api_keys 1: user is missing"),
    "a wrong field": (
        "[[api_keys]]\nuser = 'operator'\nname = ''\nscopes = ['x']\nbinding.cluster_id = 'y'",
        "api_keys 1: name: .*blank.*; scopes.0: Not one of .*; binding.cluster_id: ",
    ),
    "an unknown field": (
        "[[api_keys]]\nuser = 'operator'\nname = 'x'\nscopes = ['state:read']\nttl = 1",
        "api_keys 1: ttl: Unknown field",
    ),
    "a time without an offset": (
        (
            "[[api_keys]]\nuser = 'operator'\nname = 'x'\nscopes = ['state:read']\n"
            "expires_at = 2999-01-01T00:00:00"
        ),
        "api_keys 1: expires_at: Not an RFC 3339 timestamp",
    ),
    "NUL in the name of the owner": (
        "[[api_keys]]\nuser = \"a\\u0000\"\nname = 'x'\nscopes = ['state:read']",
        "there is no user",
    ),
}


@pytest.mark.both
@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_seed_file_is_rejected(operator: User, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*seed_file(tmp_path, text))

    assert not ApiKey.objects.exists()


def test_seed_without_required_options_is_rejected(operator: User) -> None:
    with pytest.raises(CommandError, match="specify --file, or --name, --scopes"):
        run("seed_apikeys", "--user", "operator")
    with pytest.raises(CommandError, match="No such file"):
        run("seed_apikeys", "--file", "/nonexistent/keys.toml")


@pytest.mark.parametrize("way", ["id", "secret", "previous secret", "standard input"])
def test_key_is_revoked(owner: KeyOwner, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = owner.key_id if way == "id" else owner.secret
    if way == "previous secret":
        owner.send("POST", owner.path + ":rotate", {"grace_period": 60})
    if way == "standard input":
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{owner.secret}\n"))
        given = "-"

    outcome = json.loads(run("revoke_apikey", given, "--json"))

    assert outcome == {
        "id": owner.key_id, "revoked": True, "changed": True, "descendants": 0,
        "old_secret": way == "previous secret",
    }  # fmt: skip
    assert owner.key.revoked_at is not None
    (event,) = AuditEvent.objects.filter(action="api_key.revoke")
    assert event.actor_name == "command revoke_apikey"
    if way in ("id", "secret"):
        assert run("revoke_apikey", given) == f"{owner.key_id} was already revoked\n"


def test_revoke_prints_a_text_result(owner: KeyOwner) -> None:
    assert run("revoke_apikey", owner.key_id) == f"{owner.key_id} revoked\n"


@pytest.mark.parametrize("way", ["id", "secret"])
def test_token_is_revoked(client_with: ClientWith, way: str) -> None:
    client = client_with("state:read")

    text = run("revoke_apikey", client.token.pk if way == "id" else client.secret)

    assert text == f"{client.token.pk} revoked\n"
    assert client.get("/v1/whoami").status_code == 401


def test_unknown_key_is_reported(owner: KeyOwner) -> None:
    for given in ("key-1", "tok-1", "x", "", tokens.generate(tokens.TokenKind.API_KEY)):
        with pytest.raises(CommandError, match="no key or token matches"):
            run("revoke_apikey", given)
    assert owner.key.revoked_at is None


def test_rotated_secret_does_not_revoke_the_key(owner: KeyOwner) -> None:
    new = owner.send("POST", owner.path + ":rotate").json()["secret"]

    with pytest.raises(CommandError, match=f"an expired old secret of {owner.key_id}") as caught:
        run("revoke_apikey", owner.secret)
    assert owner.secret not in str(caught.value)
    assert KeyClient(new).get("/v1/whoami").status_code == 200


def test_an_old_secret_that_works_revokes_the_key_and_is_named(owner: KeyOwner) -> None:
    new = owner.send("POST", owner.path + ":rotate", {"grace_period": 60}).json()["secret"]

    text = run("revoke_apikey", owner.secret)

    assert text == (
        f"{owner.key_id} revoked; "
        "the text contained the old secret, and the new secret is also revoked\n"
    )
    assert KeyClient(new).get("/v1/whoami").status_code == 401


@pytest.mark.parametrize(
    "form",
    [
        "Bearer {}",
        "Authorization: Bearer {}",
        "'{}'",
        '"{}"',
        "KEY={}",
        "  {}  ",
        '{{"secret":"{}"}}',
    ],
)
def test_a_secret_is_found_in_text(
    owner: KeyOwner, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(form.format(owner.secret) + "\n"))

    assert run("revoke_apikey", "-") == f"{owner.key_id} revoked\n"


@pytest.mark.parametrize("name", ["", "two words", "x" * 151])
def test_an_owner_without_a_valid_name_is_not_created(db: None, name: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'[[api_keys]]\nuser = "{name}"\nname = "ci"\nscopes = ["state:read"]\n')

    with pytest.raises(CommandError, match="cannot create the user"):
        run("seed_apikeys", "--file", str(file), "--create-users")
    assert not User.objects.exists()


@pytest.mark.parametrize("text", [b"caf\xe9 %s\n", b"\0%s\0\n"])
def test_a_secret_is_found_in_text_that_is_not_utf8(
    owner: KeyOwner, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(text % owner.secret.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)

    assert run("revoke_apikey", "-") == f"{owner.key_id} revoked\n"


@pytest.mark.parametrize("text", ["caf\udce9", "a\0b"])
def test_text_without_a_key_is_an_error(owner: KeyOwner, text: str) -> None:
    with pytest.raises(CommandError, match="no key or token matches"):
        run("revoke_apikey", text)


def test_several_secrets_are_rejected(owner: KeyOwner, client_with: ClientWith) -> None:
    other = client_with("state:read")

    with pytest.raises(CommandError, match="several secrets"):
        run("revoke_apikey", f"{owner.secret} {other.secret}")
    assert owner.key.revoked_at is None


ISSUE = ("issue_token", "--user", "operator", "--name", "x", "--scopes", "state:read, state:write")


def test_token_is_issued(operator: User) -> None:
    outcome = json.loads(run(*ISSUE, "--kind", "service", "--json"))

    token = AccessToken.objects.get()
    assert outcome == {"id": token.pk, "secret": outcome["secret"]}
    assert tokens.kind_of(outcome["secret"]) is tokens.TokenKind.SERVICE
    assert (token.scopes, token.expires_at, token.api_key) == (
        ["state:read", "state:write"], None, None,
    )  # fmt: skip
    (event,) = AuditEvent.objects.all()
    assert (event.action, event.actor_name) == ("access_token.issue", "command issue_token")


def test_issue_prints_a_text_result(operator: User) -> None:
    token_id, secret = run(*ISSUE).split()

    assert (token_id, KeyClient(secret).get("/v1/whoami").status_code) == (
        AccessToken.objects.get().pk, 200,
    )  # fmt: skip


def test_bound_token_is_issued(operator: User) -> None:
    one, two = str(uuid.uuid4()), str(uuid.uuid4())

    run(*ISSUE, "--component", one, "--component", two, "--environment", one)

    token = AccessToken.objects.get()
    assert token.bound_component_ids == sorted([one, two])
    assert token.bound_environment_ids == [one]
    listed = run("list_credentials")
    assert f"component={','.join(sorted([one, two]))};environment={one} " in listed
    assert "cluster=" not in listed
    run(*ISSUE, "--cluster", one)
    assert f"cluster={one}" in run("list_credentials")


def test_issue_bound_to_a_cluster_by_its_name(operator: User) -> None:
    cluster = Cluster.objects.create(name="prod-eu-1")

    run(*ISSUE, "--cluster", "prod-eu-1")

    assert AccessToken.objects.get().bound_cluster_id == cluster.pk


def test_issue_bound_by_names(operator: User) -> None:
    shop = Application.objects.create(name="shop", slug="shop")
    network = Component.objects.create(name="network", slug="network", application=shop)
    prod = Environment.objects.create(name="prod", slug="prod")
    other = uuid.uuid4()

    run(*ISSUE, "--component", "shop/network", "--component", str(other), "--environment", "prod")
    run(*ISSUE, "--application", "shop")

    both, whole = AccessToken.objects.order_by("pk")
    assert both.binding == Binding(
        component_ids=frozenset({network.pk, other}), environment_ids=frozenset({prod.pk})
    )
    assert whole.binding == Binding(application_ids=frozenset({shop.pk}))
    assert f"application={shop.pk} " in run("list_credentials")
    with pytest.raises(CommandError, match=r"binding\.components\.0: No such component"):
        run(*ISSUE, "--component", "network")


WRONG: dict[str, tuple[Any, str]] = {
    "an unknown user": (("--user", "nobody"), "there is no active user 'nobody'"),
    "an unknown scope": (("--scopes", "state:raed"), "scopes.0: Not one of .*did you mean"),
    "no scope": (("--scopes", ","), "scopes: .* empty"),
    "no name": (("--name", ""), "name: .* blank"),
    "a time in the past": (
        ("--expires-at", "2020-01-01T00:00:00Z"),
        "expires_at: Choose a time in the future",
    ),
    "a time without an offset": (("--expires-at", "2999-01-01"), "expires_at: Not an RFC 3339"),
    "a bad id": (("--cluster", "x"), "there is no cluster 'x'"),
    "bound both ways": (
        ("--cluster", str(uuid.uuid4()), "--component", str(uuid.uuid4())),
        "binding.cluster_id: Specify a cluster, or other resources, not both.",
    ),
}


@pytest.mark.parametrize(("more", "message"), WRONG.values(), ids=WRONG.keys())
def test_issue_rejects_invalid_arguments(
    operator: User, more: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        run(*ISSUE, *more)

    assert not AccessToken.objects.exists()


def test_issue_rejects_an_inactive_user(operator: User) -> None:
    User.objects.update(is_active=False)

    with pytest.raises(CommandError, match="there is no active user"):
        run(*ISSUE)


def listed(*options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("list_credentials", "--json", *options))[
        "credentials"
    ]
    return found


def test_credentials_are_listed(operator: User) -> None:
    component = str(uuid.uuid4())
    run(*SEED, "--expires-at", "2999-01-01T00:00:00Z")
    run(*ISSUE, "--kind", "service", "--component", component)

    key, token = listed()

    assert key == {
        "id": ApiKey.objects.get().pk, "owner": "operator", "kind": "API_KEY", "name": "ci",
        "scopes": ["apikey:write", "state:read"], "binding": None, "allowed_networks": None,
        "status": "API_KEY_STATUS_ACTIVE", "unusable_reason": None,
        "last_used_at": None, "last_used_address": None,
        "expires_at": "2999-01-01T00:00:00.000000Z",
    }  # fmt: skip
    assert token == {
        "id": AccessToken.objects.get().pk, "owner": "operator", "kind": "SERVICE", "name": "x",
        "scopes": ["state:read", "state:write"],
        "binding": described(component), "allowed_networks": None,
        "status": "ACCESS_TOKEN_STATUS_ACTIVE", "unusable_reason": None,
        "last_used_at": None, "last_used_address": None, "expires_at": None,
    }  # fmt: skip


def test_list_prints_a_table(operator: User) -> None:
    run(*SEED, "--expires-at", "2999-01-01T00:00:00Z")
    ApiKey.objects.update(name="c\x1b[2Ji")  # from before such names were refused

    heading, line = run("list_credentials").splitlines()

    assert line.startswith(
        f"{ApiKey.objects.get().pk}  operator  API_KEY  c\\x1b[2Ji  active  never      "
        "2999-01-01 00:00Z  everywhere  apikey:write,state:read"
    )
    assert heading.index("EXPIRES") == line.index("2999")


def test_list_filters_by_owner_and_includes_inactive_credentials(
    owner: KeyOwner, client_with: ClientWith, django_assert_num_queries: Any
) -> None:
    other = client_with("state:read")
    User.objects.create(username="nobody")
    ApiKey.objects.revoke(owner.key_id)

    assert owner.key_id not in {each["id"] for each in listed()}
    with django_assert_num_queries(2):
        found = {each["id"]: each["status"] for each in listed("--all")}
    assert found[owner.key_id] == "API_KEY_STATUS_REVOKED"
    assert found[other.token.pk] == "ACCESS_TOKEN_STATUS_ACTIVE"
    assert listed("--user", "nobody", "--all") == []
    with pytest.raises(CommandError, match="there is no user 'nobdy'"):
        run("list_credentials", "--user", "nobdy")


def test_a_minted_token_is_listed_with_the_end_of_its_key(owner: KeyOwner) -> None:
    minted = owner.send("POST", "/v1/access-tokens", {"name": "x", "scopes": ["state:read"]})
    token = AccessToken.objects.get()
    assert minted.status_code == 201
    assert token.expires_at is not None
    end = token.expires_at - dt.timedelta(minutes=5)
    ApiKey.objects.update(expires_at=end)

    assert AccessToken.objects.get().expiry == end
    assert {each["expires_at"] for each in listed()} == {f"{end:%Y-%m-%dT%H:%M:%S.%fZ}"}


def test_list_contains_no_secrets(owner: KeyOwner) -> None:
    owner.send("POST", owner.path + ":rotate", {"grace_period": 60})
    digest = bytes(owner.key.digest)

    for text in (run("list_credentials", "--all"), run("list_credentials", "--all", "--json")):
        assert owner.secret not in text
        assert "isk_" not in text
        assert digest.hex() not in text


PAST_ENTRIES = """
[[api_keys]]
user = "operator"
name = "old"
scopes = ["state:read"]
expires_at = 2020-01-01T00:00:00Z

[[api_keys]]
user = "operator"
name = "new"
scopes = ["state:read"]
"""


def outcomes_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return the exit code and the outcomes of a run that reports keys that do not work."""
    capsys.readouterr()
    with pytest.raises(CommandError, match="have no usable key") as caught:
        call_command(*arguments)
    return caught.value.returncode, json.loads(capsys.readouterr().out)["api_keys"]


def test_expired_entry_is_reported_and_other_entries_are_seeded(
    operator: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = seed_file(tmp_path, PAST_ENTRIES)

    code, (old, new) = outcomes_of(capsys, *command)

    assert code == 3
    assert (old["id"], old["created"], old["unusable_reason"]) == (None, False, "EXPIRED")
    assert (new["created"], new["unusable_reason"]) == (True, None)
    assert KeyClient(new["secret"]).get("/v1/whoami").status_code == 200
    code, (old, new) = outcomes_of(capsys, *command)
    assert (code, old["id"], new["created"]) == (3, None, False)


def test_an_expired_key_is_not_called_existing_alone(
    operator: User, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*SEED)
    now = dt.datetime.now(dt.UTC)
    ApiKey.objects.update(
        created_at=now - dt.timedelta(days=2), expires_at=now - dt.timedelta(days=1)
    )

    code, (outcome,) = outcomes_of(capsys, *SEED, "--expires-at", "2999-01-01T00:00:00Z", "--json")

    assert (code, outcome["unusable_reason"]) == (3, "EXPIRED")
    assert outcome["differs"]["expires_at"]["asked"] == "2999-01-01T00:00:00+00:00"
    with pytest.raises(CommandError, match="1 of 1 entries"):
        call_command(*SEED)
    assert "exists, and does not work: expired" in capsys.readouterr().out


def test_expired_single_entry_is_reported(
    operator: User, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="1 of 1 entries"):
        call_command(*SEED, "--expires-at", "2020-01-01T00:00:00Z")

    assert capsys.readouterr().out == "operator ci is not created, and does not work: expired\n"
    assert not ApiKey.objects.exists()


def test_entry_of_an_extended_key_is_usable(operator: User) -> None:
    run(*SEED)

    (outcome,) = json.loads(run(*SEED, "--expires-at", "2020-01-01T00:00:00Z", "--json"))[
        "api_keys"
    ]

    assert (outcome["created"], outcome["unusable_reason"]) == (False, None)
    assert outcome["differs"]["expires_at"]["is"] is None


def test_key_is_rotated(owner: KeyOwner, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = json.loads(run("rotate_apikey", owner.key_id, "--grace-period", "60", "--json"))

    assert outcome["id"] == owner.key_id
    for secret in (outcome["secret"], owner.secret):
        assert KeyClient(secret).get("/v1/whoami").status_code == 200
    (event,) = AuditEvent.objects.filter(action="api_key.rotate")
    assert (event.actor_name, event.details["grace_period_seconds"]) == (
        "command rotate_apikey",
        60,
    )

    key_id, secret = run("rotate_apikey", owner.key_id).split()
    assert (key_id, KeyClient(secret).get("/v1/whoami").status_code) == (owner.key_id, 200)
    assert KeyClient(outcome["secret"]).get("/v1/whoami").status_code == 401


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("key-1",), "API key does not exist"),
        (("{id}", "--grace-period", "-1"), "Choose 0 to 604800 seconds"),
        (("{id}", "--grace-period", "604801"), "Choose 0 to 604800 seconds"),
        (("{id}", "--grace-period", "9" * 20), "Choose 0 to 604800 seconds"),
        (("key-\udcff",), "an argument is not UTF-8 text"),
    ],
)
def test_invalid_rotation_is_rejected(owner: KeyOwner, arguments: Any, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("rotate_apikey", *(argument.format(id=owner.key_id) for argument in arguments))
    actions.revoke_api_key(key=owner.key, actor=Actor(name="test"))
    with pytest.raises(CommandError, match="revoked and cannot be restored"):
        run("rotate_apikey", owner.key_id)


def test_list_credentials_that_expire_soon(
    operator: User, key_with: KeyWith, client_with: ClientWith
) -> None:
    days = {name: dt.timedelta(days=int(name)) for name in ("10", "29", "31")}
    for name, lifetime in days.items():
        key_with("state:read", name=name, lifetime=lifetime)
    key_with("state:read", name="for ever")

    def soon(within: str) -> list[str]:
        return [each["name"] for each in listed("--expiring", within)]

    assert soon("30d") == ["10", "29"]
    assert soon("9") == []
    assert soon("366d") == ["10", "29", "31"]
    User.objects.update(is_active=False)
    assert soon("30d") == []
    for wrong in ("0d", "1h", "", "d", "99999999999d", "٣d"):
        with pytest.raises(CommandError, match="not a number of days"):
            run("list_credentials", "--expiring", wrong)


def test_the_first_operator_is_created_completely_or_not_at_all(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password of an existing operator could not be shown later."""

    def fail(**_fields: object) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(first_operator, "issue_access_token", fail)

    with pytest.raises(OperationalError):
        run("first_operator")
    assert not User.objects.filter(username="operator").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("rotate_apikey", "{id}"),
        ("issue_token", "--user", "operator", "--name", "ci", "--scopes", "state:read"),
        SEED,
        ("first_operator",),
    ],
)
def test_a_secret_that_cannot_be_printed_is_not_stored(
    owner: KeyOwner, arguments: tuple[str, ...]
) -> None:
    """A lost secret would leave a pipeline without a working secret."""
    if arguments[0] == "first_operator":
        User.objects.update(username="ada")

    def stored() -> list[Any]:
        columns = [
            model._default_manager.order_by("pk").values_list("pk", flat=True)
            for model in (User, AccessToken, AuditEvent)
        ]
        return [*map(list, columns), set(ApiKey.objects.values_list("pk", "digest"))]

    before = stored()
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("w") as full:
        call_command(*(argument.format(id=owner.key_id) for argument in arguments), stdout=full)
    assert stored() == before
