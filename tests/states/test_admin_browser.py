"""States in the admin as a person uses them: in a real browser, on a live server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.states.conftest import lock_info
from tests.states.samples import AFTER, BEFORE, PASSWORDS
from tests.support.browser import log_in, page_of
from tests.support.server import LiveServer

SHELL = """
from django.contrib.auth.models import Group
from apikeys.models import User
from states.models import Component, Environment
Component.objects.filter(pk="{component}").update(name="{name}")
Environment.objects.filter(pk="{environment}").update(name="production")
user, _ = User.objects.get_or_create(username="olga", defaults={{"is_staff": True}})
user.set_password("{password}")
user.save()
user.groups.set(Group.objects.filter(name="operator"))
"""


class Story(NamedTuple):
    """A state of a component of this name with two versions, locked by ada."""

    name: str
    path: str
    token: str
    password: str


@pytest.fixture(scope="module")
def story(live: LiveServer) -> Story:
    component, environment = uuid.uuid4(), uuid.uuid4()
    name, password = f"network-{component.hex[:8]}", f"olga-{uuid.uuid4()}"
    path = f"/api/v1/state/{component}/env/{environment}"
    token = live.token("state:read", "state:write", "state:admin", "audit:read")
    for body, query in ((BEFORE, ""), (AFTER, "?force=true")):
        assert live.request("POST", path + query, body, token=token).status == 200
    lock = json.dumps(lock_info(uuid.uuid4())).encode()
    assert live.request("LOCK", path, lock, token=token).status == 200
    code = SHELL.format(component=component, environment=environment, name=name, password=password)
    live.run_commands(("setup_groups",), ("shell", "--command", code))
    return Story(name, path, token, password)


@pytest.fixture
def operator_page(browser: Browser, live: LiveServer, story: Story) -> Iterator[Page]:
    """A page with the session of an operator without access to secrets."""
    with page_of(browser, live) as page:
        log_in(page, live, "olga", story.password)
        yield page


def open_state(page: Page, story: Story) -> None:
    page.goto("/admin/states/state/")
    page.get_by_label("Search").fill(f"{story.name[:12]} production")
    page.get_by_label("Search").press("Enter")
    page.get_by_role("link", name=story.name).click()
    expect(page.get_by_role("heading", name=f"{story.name} in production")).to_be_visible()


def done_by_olga(live: LiveServer, story: Story) -> dict[str, Any]:
    """Return the newest event of each action of hers."""
    answer = live.request("GET", "/api/v1/audit-events?page_size=100", token=story.token)
    events = reversed(answer.json()["audit_events"])
    return {event["action"]: event for event in events if event["actor_name"] == "olga"}


def test_comparison_shows_changes_without_secrets(operator_page: Page, story: Story) -> None:
    page = operator_page
    open_state(page, story)
    expect(page.get_by_role("img", name="Size of the documents")).to_be_visible()

    page.get_by_label("Compare from version 1").check()
    page.get_by_label("Compare to version 2").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Compare versions").click()

    expect(page.get_by_text("Sensitive values are hidden.")).to_be_visible()
    expect(page.get_by_role("rowheader").nth(3)).to_be_visible()
    assert "(sensitive value)" in page.content()
    assert not [password for password in PASSWORDS if password.decode() in page.content()]


def test_force_unlock_with_a_reason_then_restore_by_keyboard_alone(
    operator_page: Page, story: Story, live: LiveServer
) -> None:
    page = operator_page

    def reach(name: str, role: Any = "link") -> None:
        """Press Tab until the element has the focus, as a keyboard user does."""
        wanted = page.get_by_role(role, name=name, exact=True)
        expect(wanted).to_have_count(1)
        for _ in range(120):
            page.keyboard.press("Tab")
            if wanted.evaluate("element => element === document.activeElement"):
                return
        pytest.fail(f"Tab does not reach {name}")

    def press(name: str, role: Any = "link") -> None:
        reach(name, role)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    # 1. Without a reason nothing is done, and the field is named.
    open_state(page, story)
    expect(page.get_by_text("by ada@laptop")).to_be_visible()
    press("Force-unlock")
    expect(page.get_by_label("Reason")).to_be_focused()
    press("Force-unlock", "button")
    expect(page.get_by_text("This field is required.")).to_be_visible()
    assert live.request("LOCK", story.path, LOCK, token=story.token).status == 423
    # 2. With a reason the lock is released, and the audit log records both.
    reach("Reason:", "textbox")
    page.keyboard.type("ada is on holiday")
    press("Force-unlock", "button")
    expect(page.get_by_text("Lock released.")).to_be_visible()
    # 3. Restoring an old version creates a new version.
    press("Restore version 1")
    expect(page.get_by_role("heading", name="Changes")).to_be_visible()
    press("Restore a version", "button")
    expect(page.get_by_text("Version 1 is restored as version 3.")).to_be_visible()
    expect(page.get_by_role("rowheader", name="3 current")).to_be_visible()

    # 4. The audit log, linked from the state's page, has both.
    press("History")
    expect(page.get_by_role("cell", name="state.force_unlock")).to_be_visible()
    expect(page.get_by_role("cell", name="state.restore")).to_be_visible()
    recorded = done_by_olga(live, story)
    assert recorded["state.force_unlock"]["details"]["reason"] == "ada is on holiday"
    assert recorded["state.restore"]["details"]["restored"] == 1
    current = live.request("GET", story.path, token=story.token).json()
    assert current["serial"] > json.loads(AFTER)["serial"]
    assert current["resources"] == json.loads(BEFORE)["resources"]


LOCK = json.dumps(lock_info(uuid.UUID(int=9))).encode()
