"""The admin in a real browser, on a live server."""

from playwright.sync_api import Page

from tests.browser import log_in
from tests.server import LiveServer


def test_log_in_and_out(page: Page, live: LiveServer) -> None:
    log_in(page, live)

    assert page.get_by_role("heading", level=1).inner_text() == "Overview"

    page.get_by_role("button", name="Log out").click()
    page.goto("/admin/")
    assert page.get_by_label("Password").is_visible()
