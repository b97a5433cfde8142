"""The admin site: login, content security policy, and error pages."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from apikeys.models import User
from infra_service.console.site import _PAGES
from infra_service.lib.api import limits
from infra_service.lib.api.counters import MemoryCounters
from infra_service.lib.api.limits import Limiter
from tests.support.people import person

PASSWORD = "correct horse battery staple"
LOGIN = "/admin/login/"


@pytest.fixture
def visitor(db: None) -> User:
    return User.objects.create_user("person", password=PASSWORD, is_staff=True)


@pytest.fixture
def three_tries(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_LIMIT_LOGINS = 3
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(limits.time, "time", lambda: 1_000_000.0)  # within the same window
    monkeypatch.setattr("infra_service.lib.api.throttling.limiter", lambda: limiter)


def log_in(password: str, address: str = "192.0.2.1") -> Any:
    given = {"username": "person", "password": password}
    return Client().post(LOGIN, given, REMOTE_ADDR=address)


def test_user_logs_in(visitor: User, three_tries: None) -> None:
    answer = log_in(PASSWORD)

    assert (answer.status_code, answer["Location"]) == (302, "/accounts/profile/")


def test_a_guesser_is_stopped(visitor: User, three_tries: None) -> None:
    assert [log_in(f"guess {n}").status_code for n in range(4)] == [200, 200, 200, 429]

    # Also with the correct password, or the responses would reveal a successful guess.
    refused = log_in(PASSWORD)
    assert refused.status_code == 429
    assert 'id="menu' not in refused.content.decode()
    assert "Too many attempts from this address. Wait a minute." in refused.content.decode()
    assert "sessionid" not in refused.cookies
    # Other addresses can log in, and viewing the form does not count as an attempt.
    assert log_in(PASSWORD, address="192.0.2.2").status_code == 302
    assert Client().get(LOGIN, REMOTE_ADDR="192.0.2.1").status_code == 200


def test_a_guesser_of_the_old_password_is_stopped(visitor: User, three_tries: None) -> None:
    thief = Client()
    thief.force_login(visitor)
    new = {"new_password1": "a new passphrase", "new_password2": "a new passphrase"}

    def change(old: str) -> int:
        return thief.post("/admin/password_change/", {"old_password": old, **new}).status_code

    assert [change(old) for old in ("one", "two", "three", PASSWORD)] == [200, 200, 200, 429]
    visitor.refresh_from_db()
    assert visitor.check_password(PASSWORD)


def test_user_without_staff_status_cannot_log_in(visitor: User) -> None:
    User.objects.update(is_staff=False)

    assert log_in(PASSWORD).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/admin/auth/group/add/", 403, "Your groups do not allow this."),
        ("/admin/nothing/", 404, "This page does not exist."),
        ("/admin/states/state/?size=1", 400, "The request is malformed."),
    ],
)
def test_refusals_are_for_people(path: str, status: int, message: str, db: None) -> None:
    answer = person("viewer").get(path)

    assert answer.status_code == status
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    assert f"<h1>{message}</h1>" in answer.content.decode()


def test_superuser_gets_403_without_advice_on_groups(db: None) -> None:
    answer = person(username="root", is_superuser=True).get("/admin/webhooks/delivery/add/")

    assert answer.status_code == 403
    assert "<h1>The admin does not allow this.</h1>" in answer.content.decode()


def test_sections_stand_in_the_order_of_use_with_groups_beside_users(db: None) -> None:
    answer = person("viewer").get("/admin/auth/group/")

    sections = answer.context["available_apps"]
    assert [section["name"] for section in sections] == [
        "Infrastructure state", "Cluster workloads", "Changes", "Access", "Webhooks",
    ]  # fmt: skip
    assert [model["object_name"] for model in sections[3]["models"]] == [
        "ApiKey", "AccessToken", "TrustPolicy", "Issuer", "User", "Group", "AuditEvent",
    ]  # fmt: skip
    # Unlisted pages are sorted last, so their absence from the order would go unnoticed.
    registered = {model.__name__ for model in admin.site._registry}
    assert registered == set(_PAGES)
    access = person("viewer").get("/admin/auth/")
    assert access.context["app_list"] == [sections[3]]


def test_our_style_sheets_come_after_all_of_djangos(db: None) -> None:
    """Otherwise Django's rules would override equal rules of ours on pages that load them."""
    page = person("viewer").get("/admin/states/state/").content.decode()

    sheets = re.findall(r'<link rel="stylesheet" href="/static/([a-z_]+)/', page)
    assert sheets == sorted(sheets), sheets  # "admin" is before "admin_base"
    assert sheets.count("admin_base") == 4


def test_content_security_policy_is_sent(db: None, anonymous: Client) -> None:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    for path in ("/admin/", LOGIN, "/admin/jsi18n/", "/api/docs/"):
        assert person("viewer").get(path)["Content-Security-Policy"] == policy
    for path in ("/api/v1/states", "/healthz"):
        assert "Content-Security-Policy" not in anonymous.get(path)


def test_names_are_shown(anonymous: Client) -> None:
    page = anonymous.get(LOGIN).content.decode()

    assert "Infrastructure management service" in page
    assert "Django" not in page


def test_form_of_another_session_is_rejected() -> None:
    client = Client(enforce_csrf_checks=True)

    answer = client.post("/admin/login/", {"username": "ada", "password": "x"})

    assert (answer.status_code, answer["X-Request-Id"] in answer.content.decode()) == (403, True)
    assert "The form has expired" in answer.content.decode()
    assert 'href="/admin/">the overview' in answer.content.decode()


def test_the_help_is_on_the_pages_of_the_password(db: None) -> None:
    client = person("viewer")
    for path in ("", "password_change/", "password_change/done/"):
        assert '<a href="/">Help</a>' in client.get(f"/admin/{path}").content.decode()
