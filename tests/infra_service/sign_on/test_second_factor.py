"""A login needs a second factor: a one-time code or a passkey."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import requests
from cryptography.fernet import Fernet
from django.db import connection
from playwright.sync_api import Browser, Page, expect

from apikeys.models import User
from infra_service.sign_on import code_secrets
from tests.infra_service.sign_on.conftest import Service, Visitor, service_like
from tests.support.accessibility import faults
from tests.support.openid_provider import Provider

LOGIN = "/admin/login/?next=/admin/states/state/"
PASSWORD = "correct horse battery staple"
PEOPLE = 18


class Guarded(NamedTuple):
    """A superuser of a service that demands a second factor; their codes have this secret."""

    service: Service
    username: str
    secret: str

    def code(self, away: int = 0) -> str:
        """Return the code of now, or of so many half minutes from now (RFC 4226, RFC 6238)."""
        counter = struct.pack(">Q", int(time.time()) // 30 + away)
        digest = hmac.digest(base64.b32decode(self.secret), counter, hashlib.sha1)
        number = struct.unpack(">I", digest[(at := digest[-1] & 15) : at + 4])[0] & 0x7FFFFFFF
        return f"{number % 1_000_000:06}"


@pytest.fixture(scope="module")
def registered(running_provider: Provider, migrated: Service) -> Iterator[Iterator[Guarded]]:
    """Users registered for one-time codes while a password alone sufficed, one user per test."""
    with service_like(migrated, running_provider) as service:
        names = [f"root-{number}" for number in range(PEOPLE)]
        service.send(lambda: [create(name) for name in names])
        secret = register(service, names[0])
        service.send(share)
        service.stop()
        service.environment["ADMIN_SECOND_FACTOR"] = "required"
        service.start()
        yield (Guarded(service, name, secret) for name in names)


@pytest.fixture
def guarded(registered: Iterator[Guarded]) -> Guarded:
    """A user unique to the test, because attempts are counted."""
    return next(registered)


def create(name: str) -> None:
    user = User(username=name, is_staff=True, is_superuser=True)
    user.set_password(PASSWORD)
    user.save()


def register(service: Service, name: str) -> str:
    """Add codes, and return their secret."""
    with Visitor(service) as visitor:
        visitor.log_in(name, PASSWORD)
        page = visitor.get("/admin/second-factors/").text
        found = re.search(r'<code id="secret">(\w+)</code>', page)
        assert found is not None
        assert "No second factors." in page
        guarded = Guarded(service, name, found[1])
        given = {"code": guarded.code(), "password": PASSWORD}
        assert "TOTP" in send(visitor, "/admin/second-factors/", given).text
        return guarded.secret


def share() -> None:
    """Copy the TOTP secret to the other users, because registering takes a second each."""
    owner = User.objects.get(username="root-0")
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM mfa_authenticator")
        ((data,),) = cursor.fetchall()
        stored = json.loads(data) if isinstance(data, str) else data
        secret = code_secrets.decrypt(stored["secret"], owner.pk)
        cursor.execute(
            "INSERT INTO mfa_authenticator (user_id, type, data, created_at)"
            " SELECT u.id, m.type, m.data, m.created_at FROM mfa_authenticator m, apikeys_user u"
            " WHERE u.username LIKE 'root-%' AND u.id <> m.user_id"
        )
    for user in User.objects.filter(username__startswith="root-"):
        store(user.username, code_secrets.encrypt(secret, user.pk))


def store(username: str, secret: str) -> None:
    """Replace the encrypted secret of the user's codes; no code is used yet."""
    data = json.dumps({"secret": secret, "used": 0})
    value = "%s::jsonb" if connection.vendor == "postgresql" else "%s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE mfa_authenticator SET data = {value} WHERE user_id IN"
            " (SELECT id FROM apikeys_user WHERE username = %s)",
            [data, username],
        )


def stored() -> str:
    """Return all rows of second factors as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM mfa_authenticator")
        return str(cursor.fetchall())


@pytest.fixture
def visitor(guarded: Guarded) -> Iterator[Visitor]:
    with Visitor(guarded.service) as visitor:
        yield visitor


def send(visitor: Visitor, path: str, form: dict[str, str]) -> requests.Response:
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.get(path).text)
    assert token is not None
    given = {**form, "csrfmiddlewaretoken": token[1]}
    return visitor.post(path, given, headers={"Referer": visitor.service.url + path})


def give_code(visitor: Visitor, code: str) -> requests.Response:
    return send(visitor, "/admin/second-factor/", {"code": code})


def test_login_needs_the_code_after_the_password(guarded: Guarded, visitor: Visitor) -> None:
    answer = visitor.log_in(guarded.username, PASSWORD)

    assert answer.url.endswith("/admin/second-factor/")
    assert "Code" in answer.text
    assert not visitor.is_in
    logins = len(guarded.service.events("user.login"))
    assert give_code(visitor, guarded.code()).status_code == 200
    assert visitor.is_in
    assert len(guarded.service.events("user.login")) == logins + 1


def test_a_code_is_used_once(guarded: Guarded, visitor: Visitor) -> None:
    code = guarded.code()
    visitor.log_in(guarded.username, PASSWORD)
    give_code(visitor, code)
    with Visitor(guarded.service) as other:
        other.log_in(guarded.username, PASSWORD)
        assert (
            "The code or the passkey is not valid, or was already used."
            in give_code(other, code).text
        )
        assert not other.is_in


@pytest.mark.parametrize("away", [-10, 10])
def test_codes_of_other_times_are_rejected(guarded: Guarded, visitor: Visitor, away: int) -> None:
    visitor.log_in(guarded.username, PASSWORD)

    assert "The code or the passkey is not valid" in give_code(visitor, guarded.code(away)).text
    assert not visitor.is_in
    assert guarded.service.events("user.login_refused")[0].details == {
        "reason": "second_factor", "name": guarded.username,
    }  # fmt: skip


def test_malformed_codes_are_rejected(guarded: Guarded, visitor: Visitor) -> None:
    visitor.log_in(guarded.username, PASSWORD)

    for given in ({"code": "١٢٣٤٥٦"}, {"credential": "{}"}, {"credential": "no JSON"}, {}):
        assert (
            "The code or the passkey is not valid"
            in send(visitor, "/admin/second-factor/", given).text
        )
    assert not visitor.is_in


@pytest.mark.parametrize(
    "answer",
    [
        "null",
        "[" * 100_000,
        '{"clientExtensionResults": 1}',
        '{"id": "aQ", "rawId": "aQ", "clientExtensionResults": [], "response": {}}',
    ],
    ids=["null", "deep", "number", "list"],
)
def test_malformed_passkeys_are_rejected(guarded: Guarded, visitor: Visitor, answer: str) -> None:
    visitor.log_in(guarded.username, PASSWORD)

    refused = send(visitor, "/admin/second-factor/", {"credential": answer})

    assert "The code or the passkey is not valid" in refused.text
    give_code(visitor, guarded.code())
    added = {"credential": answer, "name": "a\0key", "password": PASSWORD}
    refused = send(visitor, "/admin/second-factors/", added)
    assert "The code or the passkey is not valid" in refused.text


def test_without_the_password_there_is_no_second_step(visitor: Visitor) -> None:
    answer = visitor.get("/admin/second-factor/")

    assert answer.url.endswith("/admin/login/")


def test_user_without_a_second_factor_cannot_log_in(guarded: Guarded, visitor: Visitor) -> None:
    """The user cannot add a second factor either, because a thief of the password could."""

    guarded.service.send(lambda: create("bare"))
    answer = visitor.log_in("bare", PASSWORD)

    assert "This account has no second factor" in answer.text
    assert not visitor.is_in
    assert "Log in" in visitor.get("/admin/second-factors/").text


def test_sign_on_needs_no_second_factor_of_the_service(
    visitor: Visitor, provider: Provider
) -> None:
    provider.person = {"sub": "second", "name": "Second", "groups": ["platform-ops"]}

    assert visitor.sign_on().status_code == 200
    assert visitor.is_in
    assert "Second factors" not in visitor.get("/admin/").text


def test_code_attempts_are_limited_per_user(guarded: Guarded, visitor: Visitor) -> None:
    """Each of two processes counts for itself, and a minute may end meanwhile."""
    visitor.log_in(guarded.username, PASSWORD)
    page = visitor.get("/admin/second-factor/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token is not None
    form = {"code": "000000", "csrfmiddlewaretoken": token[1]}
    headers = {"Referer": page.url}

    answers = [visitor.post(page.url, form, headers=headers).status_code for _ in range(24)]

    assert 429 in answers


def test_the_secret_is_not_in_the_database(guarded: Guarded) -> None:
    assert guarded.secret not in guarded.service.send(stored)
    recorded = [event.details for event in guarded.service.events("user.second_factor")]
    assert {"name": "root-0", "added": "totp"} in recorded


def test_second_factor_works_without_a_provider(migrated: Service, provider: Provider) -> None:
    """Codes are added while they are optional, and then demanded."""
    with service_like(migrated, provider) as service:
        for name in ("OIDC_ISSUER", "ADMIN_LOGIN"):
            del service.environment[name]
        service.environment["OIDC_NAME"] = "not shown"
        service.send(lambda: create("alone"))
        for wanted in ("optional", "required"):
            service.stop()
            service.environment["ADMIN_SECOND_FACTOR"] = wanted
            service.start()
            if wanted == "optional":
                secret = register(service, "alone")
        service.send(lambda: store("alone", stored_anew(secret)))
        with Visitor(service) as visitor:
            assert "Sign on" not in visitor.get("/admin/login/").text
            assert visitor.log_in("alone", PASSWORD).url.endswith("/admin/second-factor/")
            assert not visitor.is_in
            give_code(visitor, Guarded(service, "alone", secret).code())
            assert visitor.is_in


def stored_anew(secret: str) -> str:
    """Encrypt the secret of the user ``alone``."""
    return code_secrets.encrypt(secret, User.objects.get(username="alone").pk)


def test_codes_survive_new_keys(guarded: Guarded, visitor: Visitor) -> None:
    """A code of a release that encrypted with SECRET_KEY, after both keys were rotated."""
    service = guarded.service
    environment = dict(service.environment)
    digest = hashlib.sha256(f"second factor\n{environment['SECRET_KEY']}".encode()).digest()
    fernet = Fernet(base64.urlsafe_b64encode(digest))
    service.send(lambda: store(guarded.username, fernet.encrypt(guarded.secret.encode()).decode()))
    new_key = base64.b64encode(os.urandom(32)).decode()
    service.environment["STATE_ENCRYPTION_KEYS"] += f",{new_key}"
    (checked,) = service.manage_all(("verify_states", "--json"))
    assert json.loads(checked)["need_older_keys"]["second_factors"] == 1

    for keys in (f"{new_key},{environment['STATE_ENCRYPTION_KEYS']}", new_key):
        service.environment["STATE_ENCRYPTION_KEYS"] = keys
        done, checked = service.manage_all(
            ("rotate_state_keys", "--json"), ("verify_states", "--json")
        )
        assert json.loads(done)["second_factors"]["failed"] == 0
        assert json.loads(checked)["need_older_keys"]["second_factors"] == 0
    service.environment["SECRET_KEY"] = secrets.token_urlsafe(50)
    service.stop()
    service.start()

    visitor.log_in(guarded.username, PASSWORD)
    assert give_code(visitor, guarded.code()).status_code == 200
    assert visitor.is_in


def test_second_factors_are_changed_with_the_password_alone(
    guarded: Guarded, visitor: Visitor
) -> None:
    """The session may have been hijacked."""
    visitor.log_in(guarded.username, PASSWORD)
    give_code(visitor, guarded.code())
    page = visitor.get("/admin/second-factors/").text
    found = re.search(r'name="remove" value="(\d+)"', page)
    assert found is not None

    answer = send(visitor, "/admin/second-factors/", {"remove": found[1], "password": "wrong"})

    assert "The password is wrong." in answer.text
    assert "No second factors." not in answer.text
    right = {"remove": found[1], "password": PASSWORD}
    assert "No second factors." in send(visitor, "/admin/second-factors/", right).text
    with Visitor(guarded.service) as other:
        assert "no second factor" in other.log_in(guarded.username, PASSWORD).text


def test_passkey_is_accepted(guarded: Guarded, provider: Provider, chromium_page: Page) -> None:
    """The provider is away, and a superuser has a passkey."""
    page = chromium_page
    provider.is_away = True
    give_password(page, guarded)
    assert faults(page) == []
    page.get_by_label("Code").fill(guarded.code())
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Second factors").click()
    expect(page.get_by_text("TOTP Authenticator, since")).to_be_visible()
    assert faults(page) == []
    form = page.locator("form[data-passkey=create]")
    form.get_by_label("Name").fill("a key of the test")
    form.get_by_label("Your password").fill(PASSWORD)
    form.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("button", name="Remove a key of the test")).to_be_visible()

    with page.expect_navigation():
        page.get_by_role("button", name="Log out").click()
    give_password(page, guarded)
    page.get_by_role("button", name="Use a passkey").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("States")
    page.get_by_role("link", name="Second factors").click()
    row = page.locator("form.factor", has_text="a key of the test")
    row.get_by_label("Your password").fill(PASSWORD)
    row.get_by_role("button", name="Remove a key of the test").click()
    expect(page.get_by_text("a key of the test")).to_have_count(0)


def give_password(page: Page, guarded: Guarded) -> None:
    page.goto(LOGIN)
    page.get_by_text("Log in with a password").click()
    page.get_by_label("Username").fill(guarded.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    page.wait_for_load_state()  # with the script for passkeys


@pytest.fixture
def chromium_page(browser: Browser, guarded: Guarded) -> Iterator[Page]:
    """A page with an authenticator; a passkey is of a name, and not of an address."""
    url = guarded.service.url.replace("127.0.0.1", "localhost")
    with contextlib.closing(browser.new_context(base_url=url)) as context:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("WebAuthn.enable")
        session.send("WebAuthn.addVirtualAuthenticator", {"options": {
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
            "hasUserVerification": True, "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }})  # fmt: skip
        yield page
