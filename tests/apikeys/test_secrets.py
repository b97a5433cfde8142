"""A secret is nowhere after it was shown, and scanners find those that leak."""

import io
import json
import re
import sys
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.views.debug import get_exception_reporter_class

from apikeys import actions, tokens
from apikeys.api import views
from apikeys.models import AccessToken, ApiKey, User
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import KeyClient, KeyOwner
from tests.support.people import log_in


def every_row() -> str:
    """Return all that the database holds, as text."""
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(model._meta.db_table)}")
            for row in cursor.fetchall():
                found += [
                    bytes(v).hex() if isinstance(v, bytes | memoryview) else str(v) for v in row
                ]
    return "\n".join(found)


def a_life(owner: KeyOwner) -> tuple[list[str], str]:
    """Return every secret of a busy hour, and all else that was answered meanwhile."""
    answers: list[Any] = []

    def send(client: KeyClient, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answers.append(client.send(method, path, body))
        answer: dict[str, Any] = answers[-1].json()
        return answer

    body = {"name": "x", "scopes": ["apikey:read", "apikey:write"]}
    created = send(owner, "POST", "/v1/api-keys", {"api_key": body})
    key = KeyClient(created["secret"])
    path = f"/v1/api-keys/{created['api_key']['id']}"
    minted = send(key, "POST", "/v1/access-tokens", body)
    rotated = send(key, "POST", path + ":rotate", {"grace_period": 60})
    token = KeyClient(minted["secret"])
    send(token, "GET", "/v1/whoami")
    send(token, "GET", f"/v1/{key.secret}")
    send(token, "POST", "/v1/api-keys", {"api_key": created["api_key"], "x": key.secret})
    out = io.StringIO()
    options = ("--user", "operator", "--name", "y", "--scopes", "state:read", "--json")
    call_command("issue_token", *options, stdout=out)
    issued = json.loads(out.getvalue())["secret"]
    send(KeyClient(issued), "GET", "/v1/api-keys")
    send(token, "POST", path + ":revoke")
    send(token, "GET", "/v1/api-keys")
    send(owner, "GET", "/v1/api-keys")
    send(owner, "GET", "/v1/access-tokens")
    secrets = [owner.secret, key.secret, token.secret, rotated["secret"], issued]
    rest = [r.content.decode() for r in answers if "secret" not in r.json()]
    assert len(rest) == len(answers) - 3
    return secrets, "\n".join(rest)


def without(text: str, secrets: list[str]) -> None:
    for secret in secrets:
        assert secret not in text
        assert secret[4:36] not in text  # the random part alone


def test_no_secret_stays(owner: KeyOwner, capfd: pytest.CaptureFixture[str]) -> None:
    secrets, answers = a_life(owner)

    assert len(set(secrets)) == 5
    without(every_row(), secrets)
    without("".join(capfd.readouterr()), secrets)
    without(answers, secrets)


def test_digests_are_stored_and_shown_nowhere(owner: KeyOwner) -> None:
    secrets, answers = a_life(owner)
    digests = [tokens.digest(secret).hex() for secret in secrets]

    stored = every_row()
    assert all(digest in stored for digest in digests)
    for digest in digests:
        assert digest not in answers


def test_admin_shows_no_secrets(owner: KeyOwner, operator: User) -> None:
    secrets, _ = a_life(owner)
    digests = [tokens.digest(secret).hex() for secret in secrets]
    User.objects.filter(pk=operator.pk).update(is_staff=True, is_superuser=True)
    admin = Client()
    log_in(admin, User.objects.get(pk=operator.pk))

    pages = [admin.get("/admin/").content.decode()]
    for model, rows in ((ApiKey, ApiKey.objects.all()), (AccessToken, AccessToken.objects.all())):
        place = f"/admin/apikeys/{model._meta.model_name}/"
        paths = [place, *(f"{place}{row.pk}/change/" for row in rows)]
        pages += [admin.get(path).content.decode() for path in paths]

    text = "\n".join(pages)
    without(text, secrets)
    assert not any(digest in text for digest in digests)


class BrokenError(Exception):
    """An error whose text contains a secret."""


def test_failures_do_not_disclose_secrets(
    owner: KeyOwner, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []
    create = actions.create_api_key

    def broken(**fields: Any) -> Any:
        _key, secret = create(**fields)
        made.append(secret)
        raise BrokenError(f"cannot store {secret} of {owner.secret}")

    monkeypatch.setattr(views.actions, "create_api_key", broken)
    response = owner.send("POST", "/v1/api-keys", {"name": "x", "scopes": ["state:read"]})

    assert response.status_code == 500
    assert response.json()["error"]["message"] == (
        "Internal error. The log contains the details under this request id."
    )
    without(response.content.decode(), [owner.secret, *made])
    logged = "".join(capfd.readouterr())
    assert "cannot store [token] of [token]" in logged
    without(logged, [owner.secret, *made])


@pytest.mark.parametrize("debug", [False, True])
def test_error_reports_disclose_no_secrets(settings: Any, debug: bool) -> None:
    settings.DEBUG = debug
    secret = tokens.generate(TokenKind.API_KEY)
    request = RequestFactory().get(
        "/v1/whoami", {"q": secret}, headers={"Authorization": f"Bearer {secret}"}
    )
    held = {"in": ["a", {"structure": secret}]}
    try:
        int("broken")
    except ValueError:
        reporter = get_exception_reporter_class(request)(request, *sys.exc_info())

    html, text = reporter.get_traceback_html(), reporter.get_traceback_text()

    assert held
    assert "ValueError" in html
    assert "[token]" in html
    for part in reporter.get_traceback_data()["frames"]:
        without(str(part["vars"]), [secret])
    without(text.partition("META:")[2], [secret])


@pytest.mark.parametrize("kind", list(TokenKind))
def test_scanners_find_every_token(kind: TokenKind) -> None:
    pattern = re.compile(tokens.TOKEN_PATTERN)
    for _ in range(200):
        secret = tokens.generate(kind)
        assert tokens.kind_of(secret) is kind
        for text in (secret, f"TOKEN={secret}\n", f'"{secret}",', f"https://x:{secret}@host/"):
            found = pattern.findall(text)
            assert found == [secret]
