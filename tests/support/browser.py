"""A real browser for tests: Chromium, driven by Playwright, against the live server."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
expect.set_options(timeout=1000 * MAX_WAIT)
NO_CHROMIUM = "no chromium on the PATH: install your system's package 'chromium'"

#: Disable the browser's own traffic: no updates, no QUIC, no start pages.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser during the block; skip the test if there is no browser.

    The block must not use the database: Playwright keeps an event loop in this thread, and Django
    refuses queries in a thread with an event loop.
    """
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with (
        sync_playwright() as playwright,
        contextlib.closing(
            playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        ) as browser,
    ):
        yield browser


@contextlib.contextmanager
def page_of(browser: Browser, live: LiveServer, **context: Any) -> Iterator[Page]:
    """Open a page without cookies, and check it for errors.

    A script's error and a violation of the Content-Security-Policy fail the test.
    """
    complaints: list[str] = []
    with contextlib.closing(browser.new_context(base_url=live.url, **context)) as pages:
        page = pages.new_page()
        page.set_default_timeout(1000 * MAX_WAIT)
        page.on(
            "console",
            lambda message: (
                complaints.append(f"{message.text} {message.location}")
                if message.type == "error"
                else 0
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert complaints == [], complaints


def log_in(page: Page, live: LiveServer, username: str = "operator", password: str = "") -> None:
    """Log in through the form; ``operator`` has the live server's own password."""
    page.goto("/admin/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password or live.environment["DJANGO_SUPERUSER_PASSWORD"])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()
    page.wait_for_load_state()  # until then, buttons have no scripts
