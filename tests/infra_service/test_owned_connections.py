"""A request holds no connection and no open transaction except during a query.

The test requests every path of the service. At each point of a request without a query it inspects
the connection: reading bodies, parsing, rendering, and sending the response.
"""

from __future__ import annotations

import functools
import io
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import hashers
from django.db import connection
from django.template.backends.django import Template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from infra_service.lib.api.rendering import JsonRenderer
from states.document import contents, format4, sealing
from tests.apikeys.conftest import KeyClient
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import Backend, document, store  # noqa: F401 - a fixture
from tests.support.committed import db  # noqa: F401 - a fixture
from tests.support.people import person
from workloads.api import workloads as workload_views
from workloads.models import Cluster

pytestmark = pytest.mark.usefixtures("db")

SCOPES = (
    "apikey:read", "apikey:write", "state:read", "state:write", "state:admin", "state:secrets",
    "state:outputs",
    "cluster:read", "cluster:write", "audit:read",
)  # fmt: skip


def assert_nothing_is_owned() -> None:
    """Fail if this thread holds a connection or a transaction."""
    assert not connection.in_atomic_block
    if connection.vendor == "postgresql":
        assert connection.connection is None
        figures = connection.pool.get_stats()  # type: ignore[attr-defined]
        # The pool sometimes opens another connection that is not ready yet.
        assert figures["pool_size"] - figures["pool_available"] <= 1, figures
    elif connection.connection is not None:
        assert not connection.connection.in_transaction


class Watch:
    """Inspects the connection at many points, and records these points."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.look(name)
            result = function(*args, **kwargs)
            self.look(name)
            return result

        return watched

    def look(self, name: str) -> None:
        assert_nothing_is_owned()
        self.seen[name] += 1

    def body(self, content: bytes) -> io.BytesIO:
        """Return a body that looks whenever it is read."""
        stream = io.BytesIO(content)
        stream.read = self.around("body", stream.read)  # type: ignore[method-assign]
        return stream


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    points: list[tuple[Any, str]] = [
        (JsonRenderer, "render"), (Template, "render"), (hashers, "check_password"),
        (sealing, "read_head"), (sealing, "compress"), (sealing, "decompress"),
        (format4, "parse"), (contents, "encode"), (workload_views, "read_report"),
    ]  # fmt: skip
    for place, name in points:
        monkeypatch.setattr(place, name, watch.around(name, getattr(place, name)))
    return watch


def paths(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each path with placeholders in braces, and its view."""
    for entry in patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver) and entry.namespace != "admin":
            yield from paths(entry.url_patterns, path)
        elif isinstance(entry, URLPattern):
            written = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", path).replace(r"\.", ".")
            yield "/" + re.sub(r"[\^$]|/\?$|\\Z", "", written).removesuffix("/?"), entry.callback


def methods_of(view: Any) -> list[str]:
    has = getattr(view, "actions", None) or dir(view.cls)
    return [name for name in view.cls.http_method_names if name in has]


def ask(watch: Watch, client: Client, method: str, path: str, body: bytes) -> Any:
    extra: dict[str, Any] = {"wsgi.input": watch.body(body), "CONTENT_LENGTH": str(len(body))}
    answer = client.generic(method.upper(), path, b"x", "application/json", **extra)
    watch.look("sending")
    assert answer.status_code != 500, (method, path, answer.content)
    return answer


@pytest.mark.slow
def test_every_path_of_the_api_returns_its_connection(
    client_with: ClientWith, watch: Watch
) -> None:
    client = client_with(*SCOPES)
    names = sample(client)
    statuses: Counter[int] = Counter()
    requests = [
        (method, path)
        for path, view in paths(get_resolver().url_patterns)
        for method in methods_of(view)
    ]
    # Deletions come last, because they remove the sample.
    for method, path in sorted(requests, key=lambda one: one[0] == "delete"):
        resource = next((r for r in names if r and path.startswith(r)), "")
        ids = {**names[""], **names[resource]}
        for body in (b"{}", json.dumps({"x": 1}).encode(), document(9)):
            answer = ask(watch, client, method, path.format(**ids), body)
            statuses[answer.status_code] += 1
    assert statuses[200] > 40
    assert min(watch.seen[name] for name in ("body", "render", "parse", "read_report")) > 3


def sample(client: ApiClient) -> dict[str, dict[str, Any]]:
    """Make a resource of each kind and return their IDs by path."""
    backend = Backend(client)
    assert backend.push(document(1)).status_code == 200
    assert backend.push(document(2)).status_code == 200
    (state,) = client.items("/api/v1/states", "states")
    cluster = Cluster.objects.create(name="prod")
    key = client.send("POST", "/v1/api-keys", {"api_key": {"name": "x", "scopes": ["state:read"]}})
    ids = {
        "component_id": backend.component_id, "environment_id": backend.environment_id,
        "state_id": state["id"], "number": 1, "cluster_id": cluster.pk, "id": uuid.uuid4(),
        "workload_id": uuid.uuid4(), "webhook_id": uuid.uuid4(), "delivery_id": 1,
        "application": "shop", "component": "network", "environment": "production", "path": "/x",
    }  # fmt: skip
    return {
        "": ids,
        "/api/v1/clusters": {"id": cluster.pk},
        "/api/v1/states": {"id": state["id"]},
        "/api/v1/components": {"id": backend.component_id},
        "/api/v1/environments": {"id": backend.environment_id},
        "/v1/api-keys": {"id": key.json().get("api_key", {}).get("id", "key-1")},
    }


def test_an_object_store_is_waited_for_without_a_connection(
    client_with: ClientWith,
    watch: Watch,
    store: Any,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("save", "open", "delete"):
        monkeypatch.setattr(type(store), name, watch.around(name, getattr(type(store), name)))
    backend = Backend(client_with(*SCOPES))

    assert backend.push(document(1)).status_code == 200
    assert backend.get().status_code == 200

    assert watch.seen["save"]
    assert watch.seen["open"]


def test_every_page_of_the_admin_passes(watch: Watch) -> None:
    browser = person("Operators", is_superuser=True)
    for model in admin.site._registry:
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for page in (path, f"{path}add/"):
            assert browser.get(page).status_code in (200, 403), page
            watch.look("sending")
    assert browser.get("/admin/").status_code == 200
    watch.look("sending")


def test_a_log_in(watch: Watch) -> None:
    body = b"username=nobody&password=x"
    answer = Client().generic(
        "POST", "/admin/login/", b"x", "application/x-www-form-urlencoded",
        **{"wsgi.input": watch.body(body), "CONTENT_LENGTH": str(len(body))},
    )  # fmt: skip

    assert answer.status_code == 200
    assert watch.seen["body"]
    watch.look("sending")


def test_invalid_token_returns_its_connection(watch: Watch) -> None:
    assert KeyClient("isp_x").get("/v1/whoami").status_code == 401
    watch.look("sending")
