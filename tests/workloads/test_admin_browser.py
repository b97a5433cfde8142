"""Clusters and workloads in the admin as a person uses them: in a real browser."""

from __future__ import annotations

import json
import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import log_in
from tests.support.server import LiveServer
from tests.workloads.records import healthy, item, snapshot_body


@pytest.fixture(scope="module")
def cluster(live: LiveServer) -> str:
    """The name of a cluster that has reported three workloads."""
    token = live.token("cluster:read", "cluster:write")
    # Among the first by name, which the filter shows: other tests make clusters here, too.
    name = f"0-{uuid.uuid4().hex[:8]}"
    body = json.dumps({"name": name, "report_interval_seconds": 3600}).encode()
    answer = live.request(
        "POST", "/api/v1/clusters", body, token=token, headers={"Content-Type": "application/json"}
    )
    cluster_id = answer.json()["cluster"]["id"]
    items = [
        healthy("web", replicas_desired=2, replicas_ready=2, cpu_requests_millicores=200,
                cpu_used_millicores=50),
        healthy("mail", namespace="post"),
        item("queue", health_status="ERROR", status_reason="CrashLoopBackOff"),
    ]  # fmt: skip
    answer = live.request(
        "PUT", f"/api/v1/clusters/{cluster_id}/workloads", snapshot_body(items=items), token=token,
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert answer.status == 200, answer.body
    return name


def test_cluster_page_links_to_a_failing_workload(
    page: Page, live: LiveServer, cluster: str
) -> None:
    log_in(page, live)
    page.goto("/admin/workloads/cluster/")
    row = page.get_by_role("row").filter(has_text=cluster)
    expect(row).to_contain_text("Error")
    expect(row).to_contain_text("2 healthy, 1 error")
    row.get_by_role("link", name=cluster).click()
    expect(page.get_by_role("row", name="shop 2 1 healthy, 1 error")).to_be_visible()

    page.get_by_role("link", name="All workloads").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    # Not the row of webhooks in the navigation.
    web = page.locator("#result_list").get_by_role("row").filter(has_text="web")
    expect(web).to_contain_text("50 of 200 m")
    expect(
        web.get_by_role("img", name="CPU usage compared with the requested amount")
    ).to_be_visible()
    page.get_by_role("link", name="Error", exact=True).click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="queue", exact=True).click()
    expect(page.get_by_text("CrashLoopBackOff").first).to_be_visible()
    expect(page.get_by_role("heading", name="Health over time")).to_be_visible()
    label = re.compile("Health in the last 7 days Not observed from .*: 168 h")
    expect(page.get_by_role("img", name=label)).to_be_visible()
    expect(page.get_by_role("row", name="Did not exist Error CrashLoopBackOff")).to_be_visible()


def test_a_narrow_dark_screen_without_a_mouse(page: Page, live: LiveServer, cluster: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme="dark")
    log_in(page, live)
    page.goto("/admin/workloads/workload/")
    page.get_by_role("combobox", name="Cluster").fill(cluster)
    page.get_by_label("Search").fill("post")
    page.keyboard.press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="mail", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
