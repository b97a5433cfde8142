"""The admin in a real browser, on a live server: by mouse, by keyboard, for a screen reader."""

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from apikeys.tokens import TOKEN_PATTERN
from tests.support.accessibility import faults
from tests.support.browser import log_in, page_of
from tests.support.server import LiveServer, live_server


def test_token_is_issued_and_revoked_in_the_browser(page: Page, live: LiveServer) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    log_in(page, live)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    page.get_by_role("link", name="Access tokens").first.click()
    page.get_by_role("link", name="Add access token").click()
    page.get_by_role("textbox", name="Name").fill("a browser's token")
    page.get_by_label("state:read").check()
    # With the script of the next page, which copies the secret.
    with page.expect_navigation():
        page.get_by_role("button", name="Issue").click()

    secret = page.locator("#secret").inner_text()
    assert re.fullmatch(TOKEN_PATTERN, secret)
    page.get_by_role("button", name="Copy the secret").click()
    expect(page.get_by_role("status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == secret
    assert live.request("GET", "/api/v1/states", token=secret).status == 200

    with page.expect_navigation():
        page.get_by_role("link", name="Continue to the access token").click()
    assert secret not in page.content()
    page.get_by_role("link", name="Revoke").click()
    expect(
        page.get_by_text(
            "The token, the keys and trust policies that it created, and all their tokens"
        )
    ).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("The access token a browser's token is revoked.")).to_be_visible()
    assert live.request("GET", "/api/v1/states", token=secret).status == 401

    page.get_by_role("link", name="History").click()
    actions = page.locator("td.field-action")
    expect(actions).to_have_text(["access_token.revoke", "access_token.issue"])
    assert secret not in live.log.read_text()


def test_pages_work_with_the_keyboard_alone(page: Page, live: LiveServer) -> None:
    page.goto("/admin/apikeys/apikey/add/")
    keys = page.keyboard
    expect(page.get_by_label("Username")).to_be_focused()
    for text in ("operator", live.environment["DJANGO_SUPERUSER_PASSWORD"]):
        keys.type(text)
        keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Issue an API key")

    keys.press("Tab")
    expect(page.get_by_role("link", name="Skip to main content")).to_be_focused()
    keys.press("Enter")
    page.wait_for_url("**#content-start")
    presets = page.get_by_role("navigation", name="Presets").get_by_role("link")
    for number in range(presets.count()):
        keys.press("Tab")
        expect(presets.nth(number)).to_be_focused()
    keys.press("Tab")
    expect(page.get_by_label("Owner")).to_be_focused()
    keys.press("Tab")
    keys.type("typed")
    keys.press("Tab")
    expect(page.get_by_label("apikey:read")).to_be_focused()
    keys.press("Space")
    with page.expect_navigation():
        keys.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("Copy the secret now")
    page.get_by_role("button", name="Copy the secret").focus()
    keys.press("Enter")
    expect(page.get_by_role("status")).not_to_be_empty()


def test_components_are_found_by_name_with_the_keyboard(page: Page, live: LiveServer) -> None:
    log_in(page, live)
    for name in ("finder-network", "finder-queue"):
        page.goto("/admin/states/component/add/")
        page.get_by_role("textbox", name="Name").fill(name)
        with page.expect_navigation():
            page.get_by_role("button", name="Save", exact=True).click()
    page.goto("/admin/apikeys/apikey/add/")
    page.locator("#id_name").fill("bound by name")
    page.get_by_label("state:read").check()

    finder = page.get_by_label("Find and add: Restrict to components")
    finder.focus()
    page.keyboard.type("finder-")
    offered = page.locator("#id_component_ids_finder_names option")
    expect(offered).to_have_count(2)
    page.keyboard.type("network")
    expect(offered).to_have_count(1)
    page.keyboard.press("Enter")
    expect(finder).to_have_value("")
    expect(page.get_by_text("Added finder-network.")).to_be_visible()
    expect(page.locator("#id_component_ids")).to_have_value("finder-network")
    page.get_by_role("button", name="Issue").click()
    page.get_by_role("link", name="Continue to the API key").click()
    expect(page.get_by_role("link", name="finder-network")).to_be_visible()


def test_without_a_clipboard_the_secret_is_selected(page: Page, live: LiveServer) -> None:
    log_in(page, live)
    page.goto("/admin/apikeys/apikey/add/")
    page.get_by_role("textbox", name="Name").fill("no clipboard")
    page.get_by_label("state:read").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Issue").click()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(Error('no')) }")

    page.get_by_role("button", name="Copy the secret").click()

    expect(page.get_by_role("status")).to_have_text("Selected. Press Ctrl+C.")
    assert page.evaluate("getSelection().toString()") == page.locator("#secret").inner_text()


#: The links of the menu; a name may occur as a page's heading as well.
MENU = [
    "API keys", "Access tokens", "Applications", "Audit events", "Changes", "Clusters",
    "Components", "Deliveries", "Environments", "Groups", "Issuers", "Overview", "Resources",
    "States", "Trust policies", "Users", "Webhook endpoints", "Workloads",
]  # fmt: skip


def test_a_telephone_has_a_menu_on_every_page(browser: Browser, live: LiveServer) -> None:
    with page_of(browser, live, viewport={"width": 390, "height": 900}) as page:
        log_in(page, live)
        page.goto("/admin/states/state/")
        menu = page.get_by_role("navigation", name="Menu")
        expect(menu).not_to_be_visible()
        page.get_by_role("button", name="Menu").click()
        expect(menu).to_be_visible()
        named = menu.locator("a:not(.add)").all_inner_texts()
        # On a wider screen the open menu would cover parts of links.
        assert faults(page, [(390, "light"), (390, "dark")], between=()) == []
        page.set_viewport_size({"width": 390, "height": 900})
        page.keyboard.press("Escape")
        expect(menu).not_to_be_visible()
        page.get_by_role("button", name="Menu").click()
        menu.get_by_role("link", name="Users", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Users")

    assert sorted(named) == MENU


def test_closed_sidebar_stays_closed(page: Page, live: LiveServer) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    log_in(page, live)
    menu, button = page.locator("#menu"), page.get_by_role("button", name="Menu")
    expect(menu).to_be_visible()
    button.click()
    expect(menu).not_to_be_visible()
    page.goto("/admin/states/state/")
    expect(menu).not_to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(menu).to_be_visible()


#: Records how far the page's parts move while it loads, as Cumulative Layout Shift.
_SHIFTS = """window.shifts = 0; new PerformanceObserver(list => {
    for (const {hadRecentInput, value} of list.getEntries()) if (!hadRecentInput) shifts += value;
}).observe({type: 'layout-shift', buffered: true})"""


def test_layout_does_not_shift_while_a_page_loads(browser: Browser, live: LiveServer) -> None:
    """With an empty cache and a latency, so that scripts arrive after the first paint."""
    moved = {}
    with page_of(browser, live) as page:
        log_in(page, live)
        state: Any = page.context.storage_state()
    for path in ("", "apikeys/auditevent/", "apikeys/apikey/add/", "auth/group/add/"):
        for width in (1440, 390):
            size: Any = {"width": width, "height": 900}
            with page_of(browser, live, storage_state=state, viewport=size) as page:
                page.add_init_script(_SHIFTS)
                connection = page.context.new_cdp_session(page)
                connection.send("Network.enable")
                unlimited = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
                connection.send("Network.emulateNetworkConditions", {**unlimited, "latency": 60})
                page.goto(f"/admin/{path}")
                page.wait_for_timeout(200)  # for a shift in the frame after the load
                moved[path, width] = page.evaluate("shifts")

    assert {page: shift for page, shift in moved.items() if shift > 0.1} == {}


def test_a_row_of_a_list_takes_two_lines_on_a_telephone(browser: Browser, live: LiveServer) -> None:
    with page_of(browser, live, viewport={"width": 390, "height": 900}) as page:
        log_in(page, live)
        page.goto("/admin/apikeys/auditevent/")
        row = page.locator("#result_list tbody tr").first
        height, line = row.evaluate(
            "row => [row.offsetHeight, parseFloat(getComputedStyle(row).lineHeight)]"
        )

    assert height < 2.7 * line, "two lines and the padding"


def test_hidden_columns_stay_hidden(page: Page, live: LiveServer) -> None:
    log_in(page, live)
    page.goto("/admin/apikeys/auditevent/")
    header = page.get_by_role("columnheader", name="Address")
    expect(header).to_be_visible()
    page.locator("summary", has_text="Columns").click()
    assert faults(page, [(1440, "light"), (390, "dark")]) == []
    page.get_by_role("checkbox", name="Address").uncheck()
    expect(header).not_to_be_visible()
    page.reload()
    expect(header).not_to_be_visible()
    page.goto("/admin/apikeys/user/")
    expect(page.get_by_role("columnheader", name="Signed on")).to_be_visible()
    page.goto("/admin/apikeys/auditevent/")
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("checkbox", name="Address").check()
    expect(header).to_be_visible()


def test_a_long_name_fits_on_the_page_that_deletes_it(browser: Browser) -> None:
    # On a server of its own, because lists with this name are wider than other tests permit.
    with live_server() as server, page_of(browser, server) as page:
        log_in(page, server)
        page.goto("/admin/states/application/add/")
        page.get_by_label("Name").fill(name := "n" * 200)
        page.get_by_role("button", name="Save", exact=True).click()
        page.goto(f"/admin/states/application/?q={name}")
        page.get_by_role("link", name=name).click()
        page.get_by_role("link", name="Delete").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Delete")

        assert faults(page, [(1440, "light"), (390, "dark")]) == []
