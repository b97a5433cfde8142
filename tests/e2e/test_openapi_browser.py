"""The OpenAPI document in a browser: a usable Swagger UI from local files only."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.support.server import LiveServer


def test_swagger_ui_sends_requests(page: Page, live: LiveServer, token: str) -> None:
    """The fixture also checks the console for errors."""
    requested: list[str] = []
    failed: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)

    # 1. The document is complete.
    page.goto("/api/docs/")
    page.get_by_role("heading", name="Infrastructure management service").wait_for()
    expect(page.locator(".opblock")).to_have_count(114)
    expect(page.locator(".opblock-tag")).to_have_count(17)
    # The instructions for a token, and its field, which Authorize shows with the same name.
    top = page.locator(".information-container")
    expect(top).to_contain_text("Get a token")
    expect(
        top.get_by_role("row").filter(has_text="isp_").get_by_text("accessToken")
    ).to_be_visible()

    # 2. An operation shows its scope, and can be executed.
    page.locator("#operations-states-list_states .opblock-summary-control").click()
    listed = page.locator("#operations-states-list_states")
    listed.get_by_text("Requires the scope state:read").wait_for()
    listed.get_by_text("field['name'] = 'value'").first.wait_for()
    # Its errors are a table; only its other responses are shown in detail.
    rows = listed.locator("tr.response")
    rows.filter(has_text="SCOPE_INSUFFICIENT").wait_for()
    expect(rows.nth(5)).to_be_attached()
    expect(rows.locator(".model-example").filter(visible=True)).to_have_count(1)
    page.get_by_role("button", name="Authorize").first.click()
    scheme = page.locator(".auth-container", has_text="accessToken").first
    scheme.get_by_role("textbox").fill(token)
    scheme.get_by_role("button", name="Apply").click()
    page.get_by_role("button", name="Close").first.click()
    listed.get_by_role("button", name="Try it out").click()
    listed.get_by_role("button", name="Execute").click()
    answer = listed.locator(".live-responses-table tr.response .response-col_status")
    expect(answer).to_have_text(re.compile("^200"))

    # 3. It follows the system's dark mode, including changes.
    for scheme, is_dark in (("dark", True), ("light", False)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_function(
            "is_dark => document.documentElement.matches('.dark-mode') === is_dark", arg=is_dark
        )

    # 4. All requests were local.
    assert any("drf_spectacular_sidecar" in url for url in requested)
    local = (f"{live.url}/", "data:", "blob:")
    assert [url for url in requested if not url.startswith(local)] == []
    assert failed == []
