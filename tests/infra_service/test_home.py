"""``/`` links to every part of the service."""

from urllib.parse import urlsplit

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.conftest import error_reason
from tests.support.accessibility import faults
from tests.support.installation import ROOT

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/json, text/plain"])
def test_a_program_gets_json(accept: str) -> None:
    answer = Client().get("/", headers={"Accept": accept} if accept else {})

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == {
        "service": "infra-service", "admin": "/admin/", "api_docs": "/api/docs/",
        "openapi": "/api/schema", "ready": "/readyz",
    }  # fmt: skip


@pytest.mark.parametrize("accept", [CHROMIUM, "text/html"])
def test_a_browser_gets_a_page(accept: str) -> None:
    answer = Client().get("/", headers={"Accept": accept})

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert b'href="/admin/"' in answer.content


@pytest.mark.parametrize("accept", [CHROMIUM, "*/*"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_address_of_the_admin_without_a_slash_is_redirected(method: str, accept: str) -> None:
    answer = Client().generic(method, "/admin", headers={"Accept": accept})

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert error_reason(Client().post("/admin", headers={"Accept": accept})) == "METHOD_NOT_ALLOWED"


def test_other_methods_and_types_are_rejected() -> None:
    assert error_reason(Client().post("/", headers={"Accept": CHROMIUM})) == "METHOD_NOT_ALLOWED"
    assert error_reason(Client().get("/", headers={"Accept": "image/png"})) == "NOT_ACCEPTABLE"


def test_its_links_lead_on(page: Page) -> None:
    page.goto("/")
    assert faults(page) == []
    links = page.get_by_role("main").get_by_role("link")
    paths = [urlsplit(str(link.get_attribute("href"))).path for link in links.all()]
    # With a link to the documentation if it is built.
    assert len(paths) == 4 + (ROOT / "site").is_dir()
    assert {page.request.get(path).status for path in paths} == {200}
