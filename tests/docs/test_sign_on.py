"""docs/how-to/sign-on.md, with the settings of the page and a real browser."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.support.browser import chromium
from tests.support.openid_provider import Provider, openid_provider
from tests.support.server import LiveServer

PAGE = ROOT / "docs" / "how-to" / "sign-on.md"
INSTALL = ".venv/bin/pip install --require-hashes -r requirements-sso.txt"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def settings_of_the_page(words: dict[str, str]) -> dict[str, str]:
    (block,) = blocks("sh")
    for placeholder, meant in words.items():
        block = block.replace(placeholder, meant)
    return dict(line.split("=", 1) for line in block.splitlines())


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with openid_provider() as provider:
        provider.discovery = {"end_session_endpoint": f"{provider.url}/logout"}
        yield provider


@pytest.fixture(scope="module")
def installed(provider: Provider) -> Iterator[LiveServer]:
    """A service installed by the page: its settings, its addresses, its commands."""
    with tempfile.TemporaryDirectory(prefix="infra-sign-on-") as directory:
        secret = Path(directory, "oidc-client")
        secret.write_text(f"{provider.client_secret}\n")
        words = {
            "https://idp.example/realms/company": provider.url,
            "/etc/credstore/infra-service.OIDC_CLIENT_SECRET": str(secret),
        }
        server = LiveServer(Path(directory), WEB_WORKERS="1", **settings_of_the_page(words))
        with contextlib.closing(server):
            server.prepare()
            callback, after_logout = (
                address.strip().replace("https://infra.example", server.url)
                for address in re.findall(
                    r"^```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
                )
            )
            provider.redirect_uris.add(callback)
            provider.post_logout_redirect_uris.add(after_logout)
            place = Path(directory, "place")
            place.mkdir()
            # The extra is installed where the tests run.
            walk = Walk(
                place, readers(place, server.environment), manage_py(), {INSTALL: lambda: ""}
            )
            assert walk.through(PAGE) == 3
            server.start()
            yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, installed: LiveServer) -> Iterator[Page]:
    with contextlib.closing(browser.new_context(base_url=installed.url)) as context:
        yield context.new_page()


def test_an_operator_signs_on_and_out(page: Page, provider: Provider) -> None:
    provider.person = {"sub": "1", "preferred_username": "ada", "groups": ["platform-ops"]}
    page.goto("/admin/")
    page.get_by_role("link", name="Sign on at Acme").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("link", name="Sign on at Acme")).to_be_visible()
    assert len(provider.logouts) == 1


def test_documented_sign_on_reasons_match(page: Page, provider: Provider) -> None:
    for claims, shown in (
        ({"groups": ["sales"]}, "sales"),
        ({"roles": ["platform-ops"]}, "roles"),
    ):
        provider.person = {"sub": "2", **claims}
        page.goto("/admin/sign-on/")
        expect(page.get_by_role("listitem").filter(has_text=shown)).to_be_visible()
        expect(page.get_by_text("Request id:")).to_be_visible()


def test_emergency_login_with_a_password_works(page: Page, installed: LiveServer) -> None:
    page.goto("/admin/")
    page.get_by_label("Username").fill("operator")
    page.get_by_label("Password").fill(installed.environment["DJANGO_SUPERUSER_PASSWORD"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="Second factors")).to_be_visible()
