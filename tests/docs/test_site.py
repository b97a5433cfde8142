"""The documentation site: built from the documents, and served under the content policy."""

from __future__ import annotations

import contextlib
import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from playwright.sync_api import Browser, expect

from tests.docs.walk import ROOT
from tests.support.accessibility import WCAG, faults
from tests.support.browser import chromium, page_of
from tests.support.server import LiveServer
from tools.site.__main__ import build
from tools.site.navigation import sections

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once; a broken link fails it."""
    root = tmp_path_factory.mktemp("site")
    build(root / "docs")
    return root


@pytest.fixture(scope="module")
def live(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(
        tmp_path_factory.mktemp("live"),
        DJANGO_SETTINGS_MODULE="tests.docs.site_settings",
        TEST_SITE=str(site),
        WEB_WORKERS="1",
    )
    with contextlib.closing(server):
        server.prepare()
        server.start()
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


def get(live: LiveServer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a path as it is, which clients of higher level would normalize."""
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(
            "GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


def test_links_and_anchors_are_valid(site: Path) -> None:
    pages = {f"/{page.relative_to(site).parent}/": page for page in site.rglob("index.html")}
    anchors = {
        path: set(re.findall(r' id="([^"]+)"', page.read_text())) for path, page in pages.items()
    }
    broken = set()
    for path, page in pages.items():
        # Within the article; the rest repeats on each page.
        article = page.read_text().partition("<article")[2].partition("</article>")[0]
        for link in re.findall(r'(?:href|src)="([^"]+)"', article):
            target, anchor = urldefrag(urljoin(path, link))
            if "://" in target:
                continue
            is_there = target in pages or (site / target.lstrip("/")).is_file()
            if not is_there or (anchor and anchor not in anchors.get(target, ())):
                broken.add(f"{path}: {link}")

    assert len(pages) > 100
    assert broken == set()


def test_llms_txt_lists_the_pages(site: Path) -> None:
    text = (site / "docs" / "llms.txt").read_text()
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", text, re.MULTILINE)
    pages = [page for title, pages in sections(ROOT / "mkdocs.yml") if title for page in pages]

    assert text.startswith("# Infrastructure management service\n\n> This self-hosted service")
    assert listed == pages
    assert "- [See what changed](how-to/see-what-changed.md)" in text
    assert all((site / "docs" / page).read_text().startswith("# ") for page in listed)


def test_no_page_contains_a_script(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert re.findall(r"<script(?![^>]* (?:src|type=.?application/json))[^>]*>", text) == []
        assert not re.search(r' style="|<style|(?:href|src)="https?://[^"]*\.(?:css|js)"', text)


def test_pages_have_the_policy_and_are_cached(live: LiveServer) -> None:
    status, headers, body = get(live, "/docs/how-to/deploy/", Accept_Encoding="gzip")

    assert (status, headers["content-type"]) == (200, 'text/html; charset="utf-8"')
    assert "script-src 'self';" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-encoding"] == "gzip"
    assert headers["cache-control"] == "max-age=60, public"
    assert body[:2] == b"\x1f\x8b"
    status, _, body = get(live, "/docs/how-to/deploy/", If_None_Match=headers["etag"])
    assert (status, body) == (304, b"")
    since = headers["last-modified"]
    assert get(live, "/docs/how-to/deploy/", If_Modified_Since=since)[0] == 304


@pytest.mark.parametrize(
    ("path", "location"),
    [("/docs", "/docs/"), ("/docs/index.html", "/docs/"), ("/docs/how-to/ci", "ci/")],
)
def test_pages_have_a_single_address(live: LiveServer, path: str, location: str) -> None:
    status, headers, _ = get(live, path)

    assert status == 302
    assert urljoin(path, headers["location"]) == urljoin(path, location)


@pytest.mark.parametrize(
    "path",
    [
        "/docs/../../pyproject.toml",
        "/docs/..%2f..%2fpyproject.toml",
        "/docs/%2e%2e/%2e%2e/pyproject.toml",
        "/docs//etc/passwd",
        "/docs/how-to/..%5c..%5cpyproject.toml",
        "/docs/missing/",
        "/docs/how-to/",
    ],
)
def test_only_files_of_the_site_are_served(live: LiveServer, path: str) -> None:
    status, headers, body = get(live, path)

    assert (status, headers["content-type"]) == (404, "application/json")
    assert b"NOT_FOUND" in body


def test_search_works_in_a_browser(browser: Browser, live: LiveServer) -> None:
    """The page's scripts and the worker of the search run under the policy; errors fail it."""
    with page_of(browser, live) as page:
        page.goto("/docs/")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Infrastructure management")
        page.get_by_role("button", name="Search").first.click()
        page.get_by_role("combobox", name="Search").fill("stuck lock")
        expect(page.get_by_role("option").first).to_contain_text("Release a stuck lock")
        page.keyboard.press("Enter")
        page.wait_for_url("**/docs/how-to/release-a-stuck-lock/**")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Release a stuck lock")


def test_pages_are_accessible(browser: Browser, live: LiveServer) -> None:
    with page_of(browser, live) as page:
        for path in ("/docs/", "/docs/explanation/comparison/"):
            page.goto(path)
            page.locator("[data-md-color-scheme]").first.wait_for(state="attached")
            found = faults(page, rules=WCAG)
            # Code and tables scroll, also by keyboard.
            scrolls = re.compile(
                'box is too narrow: <(code tabindex="0"|div class="md-typeset__scrollwrap")>'
            )
            assert [fault for fault in found if not scrolls.search(fault)] == []


def test_the_search_has_its_styles(browser: Browser, live: LiveServer) -> None:
    with page_of(browser, live) as page:
        page.goto("/docs/")
        page.get_by_role("button", name="Search").first.click()
        field = page.get_by_role("combobox", name="Search")
        expect(field).to_be_focused()
        # The policy blocks a style element, and the browser's own style has a border.
        assert field.evaluate("field => getComputedStyle(field).borderTopWidth") == "0px"
