"""Signing on in a real browser: the way there and back, and the page that begins it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.infra_service.sign_on.conftest import Service
from tests.support.accessibility import faults, unreached
from tests.support.browser import page_of
from tests.support.openid_provider import Provider


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    with page_of(browser, service) as page:
        yield page


def test_user_signs_on(page: Page, service: Service, provider: Provider) -> None:
    provider.person = {
        "sub": "browser", "preferred_username": "grace", "groups": ["platform-ops"],
    }  # fmt: skip
    page.goto("/admin/states/state/")
    expect(page.get_by_label("Username")).not_to_be_visible()
    assert faults(page) == []
    assert unreached(page) == []

    page.get_by_role("link", name="Sign on at 127.0.0.1").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("States")
    expect(page.get_by_text("grace")).to_be_visible()
    with page.expect_navigation():
        page.get_by_role("button", name="Log out").click()
    page.goto("/admin/")
    expect(page.get_by_role("link", name="Sign on at 127.0.0.1")).to_be_visible()


def test_logout_ends_the_session_at_the_provider(
    page: Page, service: Service, provider: Provider
) -> None:
    provider.discovery = {"end_session_endpoint": f"{provider.url}/logout"}
    provider.person = {"sub": "leaving", "groups": ["platform-ops"]}
    page.goto("/admin/")
    page.get_by_role("link", name="Sign on at 127.0.0.1").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()

    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("link", name="Sign on at 127.0.0.1")).to_be_visible()
    assert page.url == f"{service.url}/admin/login/"
    (logout,) = provider.logouts
    assert logout["id_token_hint"]
    assert service.events("user.logout")[0].actor_name.startswith("leaving")


def test_a_password_when_the_provider_is_away(page: Page, service: Service) -> None:
    page.goto("/admin/")
    page.get_by_text("Log in with a password").click()
    page.get_by_label("Username").fill("operator")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("Please enter the correct username and password")).to_be_visible()
    expect(page.get_by_label("Username")).to_be_visible()
    assert faults(page) == []

    page.get_by_label("Password").fill(service.environment["DJANGO_SUPERUSER_PASSWORD"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_refusal_is_shown(browser: Browser, service: Service, provider: Provider) -> None:
    provider.person = {"sub": "stranger", "groups": []}
    # page_of would report an error, because Chromium logs every 403 to the console.
    with contextlib.closing(browser.new_context(base_url=service.url)) as pages:
        page = pages.new_page()
        page.goto("/admin/")
        page.get_by_role("link", name="Sign on at 127.0.0.1").click()
        look_at_the_refusal(page)


def look_at_the_refusal(page: Page) -> None:

    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Your groups at the provider have no access."
    )
    assert faults(page) == []
    page.get_by_role("link", name="Back to the login page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
