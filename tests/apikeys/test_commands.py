"""manage.py seed_apikeys, revoke_apikey and issue_token."""

import io
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apikeys import tokens
from apikeys.grants import Binding
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from tests.apikeys.conftest import KeyClient, KeyOwner
from tests.conftest import ClientWith


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
    }  # fmt: skip
    assert second == {**first, "created": False, "secret": None}
    assert key.scopes == ["apikey:write", "state:read"]
    assert KeyClient(first["secret"]).get("/v1/whoami").status_code == 200
    (event,) = AuditEvent.objects.filter(action="api_key.create")
    assert (event.actor_name, event.actor_id) == ("command seed_apikeys", None)


def test_seed_in_words(operator: User) -> None:
    user, name, key_id, secret = run(*SEED).split()

    assert (user, name, key_id) == ("operator", "ci", ApiKey.objects.get().pk)
    assert tokens.kind_of(secret) is tokens.TokenKind.API_KEY
    assert run(*SEED) == f"operator ci {key_id} exists\n"


def test_seed_replaces_a_revoked_key(operator: User) -> None:
    run(*SEED)
    ApiKey.objects.revoke(ApiKey.objects.get().pk)

    run(*SEED)

    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def seed_file(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    return ("seed_apikeys", "--file", str(path), "--json")


def test_seed_from_a_file(operator: User, tmp_path: Path) -> None:
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
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_seed_from_a_bad_file(operator: User, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*seed_file(tmp_path, text))

    assert not ApiKey.objects.exists()


def test_seed_without_enough(operator: User) -> None:
    with pytest.raises(CommandError, match="--file, or --name, --scopes, is missing"):
        run("seed_apikeys", "--user", "operator")
    with pytest.raises(CommandError, match="No such file"):
        run("seed_apikeys", "--file", "/nonexistent/keys.toml")


@pytest.mark.parametrize("way", ["id", "secret", "previous secret", "standard input"])
def test_revoke_a_key(owner: KeyOwner, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = owner.key_id if way == "id" else owner.secret
    if way == "previous secret":
        owner.send("POST", owner.path + ":rotate", {"grace_period": 60})
    if way == "standard input":
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{owner.secret}\n"))
        given = "-"

    outcome = json.loads(run("revoke_apikey", given, "--json"))

    assert outcome == {
        "id": owner.key_id, "revoked": True, "changed": True, "descendants": 0,
    }  # fmt: skip
    assert owner.key.revoked_at is not None
    (event,) = AuditEvent.objects.filter(action="api_key.revoke")
    assert event.actor_name == "command revoke_apikey"
    if way != "standard input":
        assert run("revoke_apikey", given) == f"{owner.key_id} was revoked already\n"


def test_revoke_in_words(owner: KeyOwner) -> None:
    assert run("revoke_apikey", owner.key_id) == f"{owner.key_id} revoked\n"


@pytest.mark.parametrize("way", ["id", "secret"])
def test_revoke_a_token(client_with: ClientWith, way: str) -> None:
    client = client_with("state:read")

    text = run("revoke_apikey", client.token.pk if way == "id" else client.secret)

    assert text == f"{client.token.pk} revoked\n"
    assert client.get("/v1/whoami").status_code == 401


def test_revoke_what_is_not_there(owner: KeyOwner) -> None:
    owner.send("POST", owner.path + ":rotate")
    for given in ("key-1", "tok-1", "x", owner.secret, tokens.generate(tokens.TokenKind.API_KEY)):
        with pytest.raises(CommandError) as caught:
            run("revoke_apikey", given)
        assert str(caught.value) == "there is no such key or token"
    assert owner.key.revoked_at is None


ISSUE = ("issue_token", "--user", "operator", "--name", "x", "--scopes", "state:read, state:write")


def test_issue(operator: User) -> None:
    outcome = json.loads(run(*ISSUE, "--kind", "service", "--json"))

    token = AccessToken.objects.get()
    assert outcome == {"id": token.pk, "secret": outcome["secret"]}
    assert tokens.kind_of(outcome["secret"]) is tokens.TokenKind.SERVICE
    assert (token.scopes, token.expires_at, token.api_key) == (
        ["state:read", "state:write"], None, None,
    )  # fmt: skip
    (event,) = AuditEvent.objects.all()
    assert (event.action, event.actor_name) == ("access_token.issue", "command issue_token")


def test_issue_in_words(operator: User) -> None:
    token_id, secret = run(*ISSUE).split()

    assert (token_id, KeyClient(secret).get("/v1/whoami").status_code) == (
        AccessToken.objects.get().pk, 200,
    )  # fmt: skip


def test_issue_bound(operator: User) -> None:
    one, two = str(uuid.uuid4()), str(uuid.uuid4())

    run(*ISSUE, "--component", one, "--component", two, "--environment", one)

    token = AccessToken.objects.get()
    assert token.bound_component_ids == sorted([one, two])
    assert token.bound_environment_ids == [one]


WRONG: dict[str, tuple[Any, str]] = {
    "an unknown user": (("--user", "nobody"), "there is no active user 'nobody'"),
    "an unknown scope": (("--scopes", "state:raed"), "scopes.0: Not one of .*did you mean"),
    "no scope": (("--scopes", ","), "scopes: .* empty"),
    "no name": (("--name", ""), "name: .* blank"),
    "a time in the past": (
        ("--expires-at", "2020-01-01T00:00:00Z"),
        "expires_at: Not in the future",
    ),
    "a time without an offset": (("--expires-at", "2999-01-01"), "expires_at: Not an RFC 3339"),
    "a bad id": (("--cluster", "x"), "binding.cluster_id: .*valid UUID"),
    "bound both ways": (
        ("--cluster", str(uuid.uuid4()), "--component", str(uuid.uuid4())),
        "binding.cluster_id: Bound",
    ),
}


@pytest.mark.parametrize(("more", "message"), WRONG.values(), ids=WRONG.keys())
def test_issue_what_is_wrong(operator: User, more: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*ISSUE, *more)

    assert not AccessToken.objects.exists()


def test_issue_to_an_inactive_user(operator: User) -> None:
    User.objects.update(is_active=False)

    with pytest.raises(CommandError, match="there is no active user"):
        run(*ISSUE)
