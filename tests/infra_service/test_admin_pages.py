"""Every page of the admin: accessible without sight or a mouse, and on a small screen."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator, Sized
from typing import Any, NamedTuple

import pytest
from django.contrib import admin
from django.urls import URLPattern, URLResolver, reverse
from playwright.sync_api import Browser, Page

from tests.states.conftest import lock_info
from tests.states.samples import AFTER, BEFORE
from tests.support.accessibility import SCREENS, WCAG, Screen, faults, unreached
from tests.support.browser import log_in, page_of
from tests.support.server import LiveServer, live_server

pytestmark = pytest.mark.long

#: Routes without a page: they answer with other content, or redirect to a tested page.
NO_PAGES = {
    "login": "looked at below", "logout": "a button of all pages", "jsi18n": "a script",
    "autocomplete": "JSON", "names": "JSON",
    "history": "leads to the trail's list", "states_state_document": "a download",
    "issued": "leads on when there is no secret; see what is submitted below",
}  # fmt: skip
#: Which objects the pages of tools are for, where it is not the first of the list.
CHOSEN = {
    "apikeys_apikey": "?status=active", "apikeys_accesstoken": "?status=active",
    "states_state_force_unlock": "?is=locked", "states_state_undelete": "?is=deleted",
    "states_state_change_freeze": "?is=frozen", "states_state_unfreeze": "?is=frozen",
    "webhooks_webhookendpoint": "?status=working",
    "webhooks_webhookendpoint_enable": "?status=disabled",
}  # fmt: skip
#: Additional query parameters.
QUERIES = {"states_state_compare": "?before=1&after=2"}

#: In BEFORE.
RESOURCE_ID = "5abd676a-a949-882e-9378-092ccbebea2e"
_JSON = {"Content-Type": "application/json"}

TRUST = """
[[issuers]]
name = "github"
kind = "GITHUB"
audience = "https://infra.example.com"

[[trust_policies]]
name = "deploy"
issuer = "github"
owner = "pipelines"
scopes = ["state:read"]
conditions = [
  { claim = "repository_id", equals = "1" },
  { claim = "repository_owner_id", equals = "2" },
]
"""


class Story(NamedTuple):
    """The objects shown on the pages."""

    cluster: str


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    """A server of its own: rows of other modules change the widths of the tables."""
    with live_server(RATE_LIMIT_LOGINS="0") as server:
        yield server


@pytest.fixture(scope="module")
def story(live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A service in use, with four states: frozen, with two versions, locked, and deleted."""
    live.manage_all(
        ("setup_groups",),
        ("seed_demo", "--states", "12", "--clusters", "2", "--workloads", "12"),
    )
    token = live.token("state:read", "state:write", "state:admin", "cluster:read", "webhook:write")
    deleted, frozen, locked, used = (
        f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}" for _ in range(4)
    )
    assert live.request("POST", frozen, BEFORE, token=token).status == 200
    component = frozen.split("/")[4]
    found = f"/api/v1/states?filter=field%5B'component_id'%5D%20%3D%20'{component}'"
    (state,) = live.request("GET", found, token=token).json()["states"]
    freeze, why = f"/api/v1/states/{state['id']}:freeze", b'{"reason": "database upgrade"}'
    assert live.request("POST", freeze, why, token=token, headers=_JSON).status == 200
    for path, body in ((deleted, BEFORE), (locked, BEFORE), (used, BEFORE), (used, AFTER)):
        assert live.request("POST", f"{path}?force=true", body, token=token).status == 200
    assert live.request("DELETE", deleted, token=token).status == 200
    lock = json.dumps(lock_info(uuid.uuid4())).encode()
    assert live.request("LOCK", locked, lock, token=token).status == 200
    make_webhooks(live, token)
    trust = tmp_path_factory.mktemp("trust") / "trust.toml"
    trust.write_text(TRUST)
    live.manage_all(("trust", "--file", str(trust), "--create-users"), ("index_states",))
    clusters = live.request("GET", "/api/v1/clusters", token=token).json()["clusters"]
    return Story(next(c["name"] for c in clusters if c["workload_counts"]["total"]))


def make_webhooks(live: LiveServer, token: str) -> None:
    """Make an enabled webhook with a delivery, and a disabled webhook."""
    for enabled in (False, True):
        fields = {
            "name": "chat", "url": "https://hooks.example.com/services/T0/B0/x",
            "event_types": ["state.push", "state.lock"], "enabled": enabled,
        }  # fmt: skip
        body = json.dumps({"webhook": fields}).encode()
        made = live.request("POST", "/api/v1/webhooks", body, token=token, headers=_JSON)
        assert made.status == 201
    test = f"/api/v1/webhooks/{made.json()['webhook']['id']}:test"
    assert live.request("POST", test, b"{}", token=token, headers=_JSON).status == 200


@pytest.fixture(scope="module")
def person(browser: Browser, live: LiveServer, story: Story) -> Iterator[Page]:
    """A page with the session of a user who has all permissions."""
    with page_of(browser, live) as page:
        log_in(page, live)
        yield page


def names() -> Iterator[tuple[str, URLPattern]]:
    """Yield the routes of the admin with their names."""

    def walk(patterns: Any) -> Iterator[URLPattern]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns)
            else:
                yield pattern

    for pattern in walk(admin.site.urls[0]):
        if pattern.name and not any(pattern.name.endswith(name) for name in NO_PAGES):
            yield pattern.name, pattern


def address_of(page: Page, name: str, pattern: URLPattern) -> str:
    """Return the address of the page, for an object found in a list."""
    if name == "app_list":
        return reverse("admin:app_list", args=("states",))
    wanted = pattern.pattern.converters
    if not wanted:
        return reverse(f"admin:{name}") + QUERIES.get(name, "")
    models = [f"{m._meta.app_label}_{m._meta.model_name}" for m in admin.site._registry]
    model = next((m for m in models if name.startswith(f"{m}_")), "apikeys_user")
    chosen = CHOSEN.get(name) or CHOSEN.get(model, "")
    page.goto(reverse(f"admin:{model}_changelist") + chosen)
    href = page.locator("#result_list tbody th a").first.get_attribute("href") or ""
    object_id = href.rpartition("/change/")[0].rpartition("/")[2]
    given = {key: 1 if key == "number" else object_id for key in wanted}
    return reverse(f"admin:{name}", kwargs=given) + QUERIES.get(name, "")


def test_every_page_of_the_admin_passes(person: Page) -> None:
    """New pages are covered automatically.

    The pages alternate between the screens, so that the common parts are tested on both.
    """
    wrong: dict[str, list[str]] = {}
    for name, pattern in names():
        address = address_of(person, name, pattern)
        if is_forbidden(person, name, address):
            continue
        person.goto(address)
        if person.url.endswith(address):
            facts = person.locator(".readonly").all_inner_texts()
            nothing = [f"{facts.count('None')} facts say None"] if "None" in facts else []
            wrong[name] = [*nothing, *faults(person, screen_for(wrong)), *unreached(person)]
        else:
            wrong[name] = [f"leads on to {person.url}"]

    assert len(wrong) > 40
    assert {name: found for name, found in wrong.items() if found} == {}


def is_forbidden(page: Page, name: str, address: str) -> bool:
    """Return whether the page is forbidden to all: read-only objects cannot be added or deleted."""
    return name.endswith(("_add", "_delete")) and page.request.get(address).status == 403


def screen_for(seen: Sized) -> list[Screen]:
    return [SCREENS[len(seen) % len(SCREENS)]]


def submitted(page: Page) -> None:
    with page.expect_navigation():
        page.locator("#content [type=submit]:not([name])").last.click()


def test_forms_with_errors_are_accessible(person: Page) -> None:
    """A form that is sent as it is."""
    page, wrong = person, {}
    patterns = {
        name: pattern
        for name, pattern in names()
        if name.endswith(("_add", "_force_unlock")) or name == "password_change"
    }
    for name, pattern in patterns.items():
        address = address_of(page, name, pattern)
        if is_forbidden(page, name, address):
            continue
        page.goto(address)
        page.locator("#content form").evaluate("form => { form.noValidate = true }")
        page.locator("#content [type=submit]").first.click()
        page.locator(".errornote, .errorlist").first.wait_for()
        wrong[name] = faults(page, screen_for(wrong))

    assert len(wrong) > 8
    assert {name: found for name, found in wrong.items() if found} == {}


def test_pages_after_a_click_are_accessible(person: Page, story: Story) -> None:
    """A new secret, the confirmation of a bulk revocation, and the secrets of a state."""
    page, wrong = person, {}
    page.goto("/admin/apikeys/apikey/add/")
    page.get_by_role("textbox", name="Name").fill("for everybody")
    page.get_by_label("state:read").check()
    submitted(page)
    page.locator("#secret").wait_for()
    wrong["secret"] = faults(page)

    page.goto("/admin/apikeys/apikey/?status=active")
    page.locator("input.action-select").first.check()
    page.locator("select[name=action]").select_option("revoke_selected")
    page.locator("button[name=index]").click()
    page.get_by_role("heading", name="Revoke 1").wait_for()
    wrong["revoke several"] = faults(page)

    page.goto(f"/admin/workloads/workload/?cluster={story.cluster}")
    page.locator("#result_list tbody tr").first.wait_for()
    wrong["workloads of a cluster"] = faults(page)

    page.goto("/admin/")
    page.get_by_label("Find states, resources").fill("nothing is called so")
    page.get_by_role("button", name="Go").click()
    page.get_by_text("Nothing matches").wait_for()
    wrong["nothing found by the search box"] = faults(page)
    page.get_by_role("link", name="Find a resource").click()
    page.get_by_label("Value").fill("nothing is called so")
    page.get_by_role("button", name="Find").click()
    page.get_by_text("No states contain this value").wait_for()
    wrong["nothing found"] = faults(page)
    page.get_by_label("Value").fill(RESOURCE_ID)
    page.get_by_role("button", name="Find").click()
    page.locator("#found-heading + .scrolling").wait_for()
    wrong["found"] = [*faults(page), *unreached(page)]

    contents = "states_state_contents"
    page.goto(address_of(page, contents, dict(names())[contents]))
    page.get_by_role("button", name="Show sensitive values").click()
    page.get_by_text("Sensitive values are shown.").wait_for()
    wrong["shown secrets"] = faults(page)

    assert {name: found for name, found in wrong.items() if found} == {}


def test_missing_pages_and_empty_lists(browser: Browser, live: LiveServer, person: Page) -> None:
    """In separate pages, because the console logs such a response as an error."""
    wrong = {}
    state: Any = person.context.storage_state()
    with contextlib.closing(browser.new_context(base_url=live.url, storage_state=state)) as pages:
        page = pages.new_page()
        for path in ("none/", "states/state/add/", "states/state/?q=nothing-is-called-so"):
            page.goto(f"/admin/{path}")
            wrong[path] = faults(page)

    assert {path: found for path, found in wrong.items() if found} == {}


def test_pages_before_login_are_accessible(page: Page) -> None:
    wrong = {}
    page.goto("/admin/")
    wrong["log-in"] = faults(page)
    for label in ("Username", "Password"):
        page.get_by_label(label).fill("nobody")
    page.get_by_role("button", name="Log in").click()
    page.locator(".errornote").wait_for()
    wrong["refused log-in"] = faults(page)
    page.goto("/api/docs/")
    page.locator("#operations-states-list_states .opblock-summary-control").click()
    page.get_by_text("Requires the scope state:read").wait_for()
    # Swagger UI's headings and landmarks break best practices, and its tables have a fixed width.
    found = faults(page, rules=WCAG)
    layout = re.compile("too narrow|broken")
    wrong["Swagger UI"] = [fault for fault in found if not layout.search(fault)]

    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_check_finds_faults(page: Page) -> None:
    page.set_content("""
        <html><body><main><h1>One</h1><h3>Deep</h3><input name="x">
        <div style="width: 9000px">wide</div><p style="color: #999">pale</p>
        <p style="overflow: auto; width: 9rem">unbreakableasitissolong</p>
        <b style="overflow-wrap: anywhere; display: block; width: 3rem">separable</b>
        <textarea rows="1" disabled>One line\nand another</textarea>
        <a href="#" tabindex="-1">not reached</a></main></body></html>
    """)

    found = {fault.split(": ")[1] for fault in faults(page) if ": " in fault}
    assert found >= {"color-contrast", "heading-order", "html-has-lang", "label"}
    assert {"1440: the page is too narrow", "390: broken: separable"} <= {*faults(page)}
    assert any(fault.startswith("1024: a box is too narrow: <p") for fault in faults(page))
    assert any(fault.startswith("1024: a text is cut off: <textarea") for fault in faults(page))
    assert [fault for fault in unreached(page) if "not reached" in fault]
