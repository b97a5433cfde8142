"""Events for logins, failed logins, logouts, and password changes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.test import Client

from apikeys import logins
from apikeys.models import AuditEvent, User
from infra_service.lib.api import limits
from infra_service.lib.api.counters import MemoryCounters
from infra_service.lib.api.limits import Limiter
from tests.support.people import person

LOGIN = "/admin/login/"
PASSWORD = "correct horse battery staple"
OTHER = "staple battery horse correct"


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(logins, "limiter", lambda: limiter)
    monkeypatch.setattr(limits.time, "time", lambda: 1_800_000_000.0)


@pytest.fixture
def ada(db: None) -> User:
    user = User.objects.create(username="ada", is_staff=True)
    user.set_password(PASSWORD)
    user.save()
    return user


def events() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return the events in the audit log after the fixture's own event."""
    found = AuditEvent.objects.filter(action__startswith="user.").order_by("id")[1:]
    return [(e.action, e.actor_name, e.resource_id, e.details) for e in found]


def try_to_log_in(name: str, password: str, client: Client | None = None) -> Any:
    client = client or Client()
    given = {"username": name, "password": password}
    return client.post(LOGIN, given, headers={"X-Request-ID": "mine"})


def test_a_session_lasts_twelve_hours(ada: User) -> None:
    browser = Client()
    try_to_log_in("ada", PASSWORD, browser)

    age = browser.session.get_expiry_age()
    assert 0 < age <= 12 * 60 * 60
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME]
    assert 0 < cookie["max-age"] <= 12 * 60 * 60


def test_login_and_logout_are_recorded(ada: User) -> None:
    browser = Client()
    answer = try_to_log_in("ada", PASSWORD, browser)
    browser.post("/admin/logout/")
    browser.post("/admin/logout/")  # the session has no user any more

    assert events() == [
        ("user.login", "ada", str(ada.pk), {}),
        ("user.logout", "ada", str(ada.pk), {}),
    ]
    event = AuditEvent.objects.get(action="user.login")
    assert (event.actor_id, event.address) == (ada.pk, "127.0.0.1")
    assert (event.request_id, event.client_request_id) == (answer["X-Request-ID"], "mine")


def test_failed_login_records_only_names_of_existing_users(ada: User) -> None:
    """In the wrong field there may be a password."""
    for name in ("ada", PASSWORD, "x" * 10_000, "a\0b"):
        assert try_to_log_in(name, OTHER).status_code == 200
    User.objects.update(is_active=False)
    try_to_log_in("ada", PASSWORD)

    failed = [event for event in events() if event[0] == "user.login_failed"]
    assert failed[0] == failed[-1] == ("user.login_failed", "", str(ada.pk), {"name": "ada"})
    assert set(map(str, failed[1:-1])) == {str(("user.login_failed", "", "", {}))}
    everything = str(list(AuditEvent.objects.values_list()))
    assert PASSWORD not in everything
    assert OTHER not in everything


def test_failed_logins_are_recorded_up_to_a_limit(
    ada: User, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(70):
        client = Client(REMOTE_ADDR=f"192.0.2.{number}")
        try_to_log_in("ada" if number % 2 else "nobody", OTHER, client)

    assert len(events()) == 60
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line[:1] == "{"]
    logged = [line for line in lines if line["event"] == "login_failed"]
    assert [line.get("name") for line in logged] == [None, "ada"] * 5


def test_failure_outside_of_a_page_is_recorded(ada: User) -> None:
    assert authenticate(username="ada", password=OTHER) is None

    assert events() == [("user.login_failed", "", str(ada.pk), {"name": "ada"})]


def test_change_of_the_own_password_is_recorded(ada: User) -> None:
    browser = Client()
    try_to_log_in("ada", PASSWORD, browser)

    browser.post(
        "/admin/password_change/",
        {"old_password": PASSWORD, "new_password1": OTHER, "new_password2": OTHER},
    )

    assert events()[1:] == [("user.password", "ada", str(ada.pk), {"name": "ada", "own": True})]


def test_change_of_the_password_of_another_user_is_recorded(ada: User) -> None:
    person("administrator").post(
        f"/admin/apikeys/user/{ada.pk}/password/",
        {"password1": OTHER, "password2": OTHER, "usable_password": "true"},
    )

    set_, *_ = events()
    who = "administrator-person"
    assert set_ == ("user.password", who, str(ada.pk), {"name": "ada", "own": False})


def test_commands_are_recorded(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", "--noinput", "--username", "root", "--email", "r@example.com")
    monkeypatch.setattr(
        "django.contrib.auth.management.commands.changepassword.getpass.getpass", lambda **_: OTHER
    )
    call_command("changepassword", "ada", stdout=io.StringIO())

    root = str(User.objects.get(username="root").pk)
    made = {"name": "root", "is_superuser": True}
    assert events() == [
        ("user.create", "command createsuperuser", root, made),
        ("user.password", "command changepassword", str(ada.pk), {"name": "ada", "own": False}),
    ]


def test_shell_is_recorded(ada: User) -> None:
    ada.set_password(OTHER)
    ada.save()
    User.objects.create_superuser("root", "r@example.com", PASSWORD)

    assert [event[:2] for event in events()] == [
        ("user.password", "command"), ("user.create", "command"),
    ]  # fmt: skip
