"""The client against the replayed API server: pages, watches and everything that goes wrong."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import ConfigException

from tests.apiserver import (
    DEAD_METRICS,
    DEPLOYMENTS,
    EXPIRED,
    FORBIDDEN,
    KUBE_SYSTEM,
    NO_METRICS,
    PODS,
    REPLICASETS,
    TOKEN,
    UNAUTHORIZED,
    Fault,
    ReplayServer,
    event,
    lines,
    recorded,
)
from workloads.collector import client as client_module
from workloads.collector import connect
from workloads.collector.client import ClusterClient, Resource
from workloads.collector.errors import (
    EndedEarlyError,
    ExpiredError,
    RefusedError,
    UnreachableError,
)

DEPLOYMENT_LIST = Resource(DEPLOYMENTS)


def names(pages: Any) -> list[str]:
    return [raw["metadata"]["name"] for page in pages for raw in page.objects()]


def test_pages_are_those_of_the_recording(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 10)
    kept = [recorded(f"page-deployments-{n}.json") for n in (1, 2, 3)]
    api.lists[DEPLOYMENTS] = [raw for page in kept for raw in page["items"]]

    pages = list(client.pages(DEPLOYMENT_LIST))

    assert [list(page.objects()) for page in pages] == [page["items"] for page in kept]
    assert [
        (p.metadata.resource_version, p.metadata.continue_, p.metadata.remaining_item_count)
        for p in pages
    ] == [
        (m["resourceVersion"], m.get("continue", ""), m.get("remainingItemCount"))
        for m in (page["metadata"] for page in kept)
    ]
    assert [query.get("continue", "") for query in api.queries_of(DEPLOYMENTS)] == [
        "", *[page["metadata"]["continue"] for page in kept[:2]]
    ]  # fmt: skip


def test_lists_are_requested_with_gzip(client: ClusterClient, api: ReplayServer) -> None:
    assert len(names(client.pages(Resource(PODS)))) == 119
    assert [h["Accept-Encoding"] for h in api.headers] == ["gzip", "gzip"]


def test_page_releases_read_objects(client: ClusterClient) -> None:
    (page,) = client.pages(DEPLOYMENT_LIST)
    objects = page.objects()
    assert page.items is not None
    total = len(page.items)

    next(objects)

    assert len(page.items) == total - 1
    assert len(list(objects)) == total - 1
    assert page.items == []


def test_only_metadata_of_replicasets_is_requested(client: ClusterClient) -> None:
    (page,) = client.pages(Resource(REPLICASETS, metadata_only=True))

    assert {tuple(raw) for raw in page.objects()} == {("kind", "apiVersion", "metadata")}


def test_an_empty_list_may_be_null(client: ClusterClient, api: ReplayServer) -> None:
    api.faults[DEPLOYMENTS].append(Fault(200, b'{"metadata": {}, "items": null}'))

    assert names(client.pages(DEPLOYMENT_LIST)) == []


def test_expired_continue_token_is_reported(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 10)
    api.faults[f"{DEPLOYMENTS}?continue"].append(EXPIRED)

    with pytest.raises(ExpiredError, match="410: The provided continue parameter is too old"):
        list(client.pages(DEPLOYMENT_LIST))


@pytest.mark.parametrize(("fault", "status", "message", "final"), [
    (UNAUTHORIZED, 401, "Unauthorized", True),
    (FORBIDDEN, 403, 'deployments.apps is forbidden: User "workload-reader" cannot list', True),
    (NO_METRICS, 404, "404 page not found", True),
    (DEAD_METRICS, 503, "error trying to reach service: dial tcp", False),
    (Fault.of("bad-continue"), 400, "invalid continue token", True),
    (Fault.of("rv-too-large"), 504, "Timeout: Too large resource version", False),
    (Fault.of("410-exact-rv"), 410, "The resourceVersion for the provided list is too old", False),
    (Fault(429, b"[1]"), 429, "", False),
    (Fault(500, b"\xff\xfe"), 500, "", False),
    (Fault(302, b"", headers={"Location": "http://127.0.0.1:1/"}), 302, "", True),
])  # fmt: skip
def test_refusals_are_reported(
    client: ClusterClient,
    api: ReplayServer,
    fault: Fault,
    status: int,
    message: str,
    *,
    final: bool,
) -> None:
    api.faults[KUBE_SYSTEM].append(fault)

    with pytest.raises(RefusedError) as caught:
        client.get(KUBE_SYSTEM)

    assert caught.value.status == status
    assert str(caught.value).startswith(f"{status}: {message}")
    assert caught.value.is_final is final
    # The connection is good for more.
    assert client.get(KUBE_SYSTEM)["metadata"]["name"] == "kube-system"


def test_retry_after_of_a_server_is_respected(client: ClusterClient, api: ReplayServer) -> None:
    api.faults[KUBE_SYSTEM] += [
        Fault(503, b"", headers={"Retry_After": "7"}),
        Fault(503, b"", headers={"Retry_After": "Fri, 31 Dec 1999 23:59:59 GMT"}),
        Fault(503, b"", headers={"Retry_After": "9" * 400}),
    ]

    for wish in (7.0, 0.0, 300.0):
        with pytest.raises(RefusedError) as caught:
            client.get(KUBE_SYSTEM)
        assert caught.value.retry_after == wish


def test_wrong_token_is_reported(api: ReplayServer, tmp_path: Path) -> None:
    kubeconfig = api.kubeconfig(tmp_path, token="stale")
    client = connect.from_kubeconfig(str(kubeconfig), "replay")

    with pytest.raises(RefusedError, match="401: Unauthorized") as caught:
        client.get(KUBE_SYSTEM)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a": "\xff"}', b'{"a":' + b"[" * 100_000])
def test_non_json_response_is_reported(
    client: ClusterClient, api: ReplayServer, body: bytes
) -> None:
    api.faults[KUBE_SYSTEM].append(Fault(200, body))

    with pytest.raises(UnreachableError, match="invalid JSON from the API server"):
        client.get(KUBE_SYSTEM)


def test_truncated_response_is_reported(client: ClusterClient, api: ReplayServer) -> None:
    api.faults[DEPLOYMENTS].append(Fault(200, b'{"items": []}', cut=5))

    with pytest.raises(UnreachableError, match="IncompleteRead"):
        list(client.pages(DEPLOYMENT_LIST))


@pytest.mark.parametrize(("closed", "requests"), [(1, 2), (9, 2)])
def test_closed_connection_is_reported(
    client: ClusterClient, api: ReplayServer, closed: int, requests: int
) -> None:
    """Repeat the request once: a kept connection may be closed while a request is on its way."""
    client.get(KUBE_SYSTEM)
    api.faults[KUBE_SYSTEM] += [Fault(200, b"", silent=True)] * closed

    if closed < requests:
        client.get(KUBE_SYSTEM)
    else:
        with pytest.raises(UnreachableError, match="closed connection without response"):
            client.get(KUBE_SYSTEM)

    assert len(api.queries_of(KUBE_SYSTEM)) == 1 + requests


def test_unreachable_server_is_reported(api: ReplayServer, client: ClusterClient) -> None:
    api.__exit__()

    with pytest.raises(UnreachableError, match="/namespaces/kube-system"):
        client.get(KUBE_SYSTEM)


def test_watch_yields_events(client: ClusterClient, api: ReplayServer) -> None:
    api.watches.scripts[DEPLOYMENTS].append([*lines("watch-bookmarks.jsonl"), b""])
    api.watches.hold = False

    with client.watch(DEPLOYMENT_LIST, "1500") as events:
        seen = [(kind, raw["metadata"].get("name")) for kind, raw in events]  # type: ignore[attr-defined]

    assert seen == [("BOOKMARK", None), ("DELETED", "api"), ("BOOKMARK", None)]
    (query,) = api.queries_of(DEPLOYMENTS)
    # Below the minute after which many proxies close quiet connections.
    assert 45 <= int(query.pop("timeoutSeconds")) <= 55
    assert query == {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": "1500"}
    # A compressed watch would come late.
    assert [h["Accept-Encoding"] for h in api.headers] == ["identity"]


def test_watch_of_metadata_yields_events(client: ClusterClient, api: ReplayServer) -> None:
    """In the form for one object: for the form of a list, servers hang up without a byte."""
    api.watches.scripts[REPLICASETS].append([event("ADDED", api.lists[REPLICASETS][0])])
    api.watches.hold = False

    with client.watch(Resource(REPLICASETS, metadata_only=True), "1") as events:
        ((kind, raw),) = events

    assert (kind, raw["kind"], "spec" in raw) == ("ADDED", "PartialObjectMetadata", False)


def test_immediately_closed_watch_is_reported(client: ClusterClient, api: ReplayServer) -> None:
    api.watches.hold = False

    with (
        pytest.raises(EndedEarlyError, match=r"ended after 0\.\d of \d\d s without an event"),
        client.watch(DEPLOYMENT_LIST, "1") as events,
    ):
        list(events)


def test_a_quiet_watch_ends_in_its_time(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a bookmark, as on older servers: that is no failure."""
    monkeypatch.setattr(client_module, "_WATCH_SECONDS", (1, 1))

    with client.watch(DEPLOYMENT_LIST, "1") as events:
        assert list(events) == []


def test_a_dead_connection_ends_a_watch(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends nothing and does not end the watch at its timeout."""
    monkeypatch.setattr(client_module, "_WATCH_SECONDS", (1, 1))
    monkeypatch.setattr(client_module, "_WATCH_OVERTIME", 1.0)
    api.faults[f"{DEPLOYMENTS}?watch"].append(Fault(200, b"{", cut=0, hold=True))

    with (
        pytest.raises(UnreachableError, match="ReadTimeoutError"),
        client.watch(DEPLOYMENT_LIST, "1") as events,
    ):
        list(events)


def test_watch_from_too_long_ago_has_expired(client: ClusterClient, api: ReplayServer) -> None:
    api.watches.scripts[DEPLOYMENTS].append(lines("watch-410-too-old.jsonl"))

    with (
        pytest.raises(ExpiredError, match="too old resource version: 1"),
        client.watch(DEPLOYMENT_LIST, "1") as events,
    ):
        list(events)


@pytest.mark.parametrize("line", [
    b'{"type": "ADDED"}', b"nonsense",
    b'{"type": "ERROR", "object": {"code": "x", "message": "odd"}}',
])  # fmt: skip
def test_watch_with_malformed_lines_is_reported(
    client: ClusterClient, api: ReplayServer, line: bytes
) -> None:
    api.watches.scripts[DEPLOYMENTS].append([line])

    with (
        pytest.raises((UnreachableError, RefusedError)),
        client.watch(DEPLOYMENT_LIST, "1") as events,
    ):
        list(events)


def test_close_interrupts_a_waiting_watch(client: ClusterClient, api: ReplayServer) -> None:
    threading.Timer(0.2, client.close).start()
    started = time.monotonic()

    with (
        pytest.raises(UnreachableError),
        client.watch(DEPLOYMENT_LIST, "1") as events,
    ):
        list(events)

    assert time.monotonic() - started < 20
    with pytest.raises(UnreachableError, match="the client stopped during the request"):
        client.get(KUBE_SYSTEM)


def test_closing_ends_the_wait_for_an_answer(client: ClusterClient, api: ReplayServer) -> None:
    """And nothing is asked after that."""
    api.before_answer = lambda _path, _query: (client.close(), api.watches.hang_up.wait(30))
    started = time.monotonic()

    with pytest.raises(UnreachableError, match="the client stopped during the request"):
        client.get(KUBE_SYSTEM)
    with pytest.raises(UnreachableError, match="the client stopped during the request"):
        client.get(KUBE_SYSTEM)

    assert time.monotonic() - started < 20
    assert len(api.queries_of(KUBE_SYSTEM)) == 1


def test_closing_ends_a_slow_plugin(client: ClusterClient) -> None:
    forgotten = threading.Event()
    client._connection._api.configuration.refresh_api_key_hook = lambda _configuration: (
        forgotten.wait(30)
    )
    threading.Timer(0.2, client.close).start()
    started = time.monotonic()

    with pytest.raises(UnreachableError, match="the client stopped during the request"):
        client.get(KUBE_SYSTEM)

    assert time.monotonic() - started < 20
    forgotten.set()


def test_response_after_the_close_is_discarded(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, answered = client._connection._api.call_api, threading.Event()

    def call_api(*arguments: Any, **options: Any) -> Any:
        answer = real(*arguments, **options)
        client.close()
        monkeypatch.setattr(answer.response, "close", answered.set)
        return answer

    monkeypatch.setattr(client._connection._api, "call_api", call_api)

    with pytest.raises(UnreachableError, match="the client stopped during the request"):
        client.get(KUBE_SYSTEM)
    assert answered.wait(60)


def test_failed_renewal_of_a_token_is_reported(client: ClusterClient) -> None:
    def renew(_configuration: Any) -> None:
        raise ConfigException("Token file exists but empty.")

    client._connection._api.configuration.refresh_api_key_hook = renew

    with pytest.raises(UnreachableError, match="Token file exists but empty"):
        client.get(KUBE_SYSTEM)
