"""A client that openapi-python-client makes of docs/reference/openapi.yaml, as users would."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.backend import Backend
from tests.support.installation import ROOT
from tests.support.server import LiveServer

PACKAGE = "infra_client"
SCOPES = (
    "apikey:read", "apikey:write", "state:read", "state:write", "cluster:read", "cluster:write",
)  # fmt: skip


class Generated:
    """The generated package, and clients of it that send one secret each."""

    def __init__(self, server: LiveServer, connections: contextlib.ExitStack) -> None:
        self.url, self._connections = server.url, connections
        self.models: Any = importlib.import_module(f"{PACKAGE}.models")
        self._package: Any = importlib.import_module(PACKAGE)

    def client(self, secret: str) -> Any:
        client = self._package.AuthenticatedClient(base_url=self.url, token=secret)
        return self._connections.enter_context(client)

    def call(self, client: Any, tag: str, name: str, *path: Any, **more: Any) -> Any:
        """Call an operation and return what its answer was parsed into."""
        operation = importlib.import_module(f"{PACKAGE}.api.{tag}.{name}")
        answer = operation.sync_detailed(*path, client=client, **more)
        assert answer.headers["X-Request-ID"]
        return answer.parsed


@pytest.fixture(scope="module")
def generated(live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    directory = tmp_path_factory.mktemp("generated")
    config = directory / "config.json"
    config.write_text(json.dumps({"package_name_override": PACKAGE, "post_hooks": []}))
    document = ROOT / "docs" / "reference" / "openapi.yaml"
    command = [
        Path(sys.executable).parent / "openapi-python-client", "generate", "--path", document,
        "--output-path", directory / PACKAGE, "--config", config, "--meta", "none",
        "--fail-on-warning",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, "arning" in done.stdout) == (0, False), done.stdout
    sys.path.insert(0, str(directory))
    with contextlib.ExitStack() as connections:
        yield Generated(live, connections)
    sys.path.remove(str(directory))


@pytest.fixture(scope="module")
def key(live: LiveServer, generated: Generated) -> Any:
    """A client with an API key."""
    return generated.client(live.api_key(*SCOPES))


@pytest.fixture(scope="module")
def token(generated: Generated, key: Any) -> Any:
    """A client with an access token that it has minted itself."""
    models = generated.models
    asked = models.AccessTokenRequest(
        name="job", scopes=[models.Scope(scope) for scope in SCOPES], ttl="900s"
    )
    body = models.CreateAccessTokenRequest(access_token=asked)
    minted = generated.call(key, "access_tokens", "mint_access_token", body=body)
    assert isinstance(minted, models.AccessTokenWithSecret)
    assert minted.access_token.kind is models.AccessTokenKind.PERSONAL
    return generated.client(minted.secret)


def test_every_type_has_a_name(generated: Generated) -> None:
    """A part of a union without one is numbered, as AccessTokenRunType0 was."""
    names = [name for name in dir(generated.models) if name[0].isupper()]
    assert len(names) > 200
    assert [name for name in names if re.search(r"\d$", name)] == []


def test_keys(generated: Generated, key: Any) -> None:
    models = generated.models
    body = models.CreateApiKeyRequest(
        api_key=models.ApiKeyRequest(name="deploy", scopes=[models.Scope.STATEREAD])
    )

    made = generated.call(key, "api_keys", "create_api_key", body=body)
    assert isinstance(made, models.ApiKeyWithSecret)
    assert made.secret.startswith("isk_")
    assert (made.api_key.binding, made.api_key.expires_at) == (None, None)
    assert isinstance(made.api_key.created_at, dt.datetime)

    change = models.UpdateApiKeyRequest(
        api_key=models.ApiKeyChangesRequest(name="renamed"), update_mask="name"
    )
    changed = generated.call(key, "api_keys", "update_api_key", made.api_key.id, body=change)
    assert changed.api_key.name == "renamed"
    assert changed.api_key.scopes == [models.Scope.STATEREAD]

    page = generated.call(key, "api_keys", "list_api_keys", filter_="field['name'] = 'renamed'")
    assert [found.id for found in page.api_keys] == [made.api_key.id]
    revoked = generated.call(key, "api_keys", "revoke_api_key", made.api_key.id)
    assert revoked.api_key.status is models.ApiKeyStatus.API_KEY_STATUS_REVOKED


def test_the_documented_program(
    live: LiveServer, generated: Generated, token: Any, writer_token: str
) -> None:
    """docs/how-to/openapi.md, as it stands there."""
    page = (ROOT / "docs" / "how-to" / "openapi.md").read_text()
    (program,) = re.findall(r"^```python\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    states = [Backend(live, writer_token) for _ in range(2)]
    for state in states:
        assert state.push(b'{"serial": 7}').status == 200
    assert states[1].lock(str(uuid.uuid4())).status == 200
    environment = {
        **os.environ,
        "BASE_URL": live.url,
        "TOKEN": writer_token,
        "PYTHONPATH": sys.path[0],
    }

    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert f"{states[0].component_id} 7 not locked" in printed
    assert f"{states[1].component_id} 7 ada@laptop" in printed


def document(serial: int, size: int) -> dict[str, Any]:
    """Return a state document with one output."""
    return {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": serial,
        "lineage": "generated",
        "outputs": {"size": {"value": size, "type": "number"}},
        "resources": [],
    }


def test_states(generated: Generated, token: Any) -> None:
    models, call = generated.models, generated.call
    environment = uuid.uuid4()
    components = [uuid.uuid4() for _ in range(3)]
    for component in components:
        body = models.StateDocument.from_dict(document(1, 1))
        assert call(token, "state_backend", "push_state", component, environment, body=body) is None
    body = models.StateDocument.from_dict(document(2, 2))
    assert call(token, "state_backend", "push_state", components[0], environment, body=body) is None
    read = call(token, "state_backend", "read_state_document", components[0], environment)
    assert read.to_dict() == document(2, 2)

    # 1. All pages of a list.
    states, page_token = [], ""
    while True:
        page = call(
            token, "states", "list_states", page_size=2, page_token=page_token,
            filter_=f"field['environment_id'] = '{environment}'",
        )  # fmt: skip
        states += page.states
        page_token = page.next_page_token
        if not page_token:
            break
    assert [state.component_id for state in states] == components
    assert [state.serial for state in states] == [2, 1, 1]

    # 2. What is in one of them, and how it became so.
    outputs = call(token, "states", "list_state_outputs", states[0].id)
    assert [(o.name, o.value) for o in outputs.outputs] == [("size", 2)]
    versions = call(token, "states", "list_state_versions", states[0].id).versions
    assert [version.number for version in versions] == [2, 1]
    difference = call(token, "states", "diff_state_versions", states[0].id, 2).diff
    (change,) = difference.outputs
    assert (change.name, change.action) == ("size", models.ChangeAction.CHANGED)
    assert [(a.path, a.before, a.after) for a in change.attributes] == [("value", 1, 2)]
    assert (difference.before.serial, difference.after.serial) == (1, 2)


def test_locks_and_errors(generated: Generated, token: Any) -> None:
    models, call = generated.models, generated.call
    place = (uuid.uuid4(), uuid.uuid4())
    held = models.NewLockInfo(id=uuid.uuid4(), who="ada@laptop")
    assert call(token, "state_backend", "lock_state", *place, body=held).id == held.id

    refused = call(
        token, "state_backend", "lock_state", *place, body=models.NewLockInfo(id=uuid.uuid4())
    )  # fmt: skip
    assert isinstance(refused, models.LockInfoError)
    assert (refused.id, refused.who, refused.error.code) == (held.id, "ada@laptop", 423)
    body = models.StateDocument.from_dict(document(1, 1))
    assert call(token, "state_backend", "push_state", *place, body=body, id=held.id) is None
    assert call(token, "state_backend", "unlock_state", *place, body=held) is None

    old = call(token, "state_backend", "push_state", *place, body=body, id=held.id)
    assert isinstance(old, models.Error)
    assert (old.error.code, old.error.status) == (409, models.ErrorStatus.ABORTED)
    info, request = old.error.details
    assert isinstance(info, models.ErrorInfo)
    assert (info.reason, info.domain) == ("LOCK_NOT_HELD", "infra-service")
    assert isinstance(request, models.RequestInfo)

    wrong = call(token, "states", "list_states", filter_="field['nam'] = 'x'")
    assert wrong.error.details[0].metadata["code"] == "unknown_field"
    unknown = call(generated.client("isp_x"), "states", "list_states")
    assert unknown.error.details[0].reason == "CREDENTIALS_INVALID"


def test_clusters_and_workloads(generated: Generated, token: Any) -> None:
    models, call = generated.models, generated.call
    name = f"generated {uuid.uuid4()}"
    body = models.CreateClusterRequest(cluster=models.ClusterRequest(name=name))
    cluster = call(token, "clusters", "create_cluster", body=body).cluster
    assert cluster.health_status is models.ClusterHealthStatus.PENDING

    items = [
        models.ReportedItem(
            namespace="shop",
            name=f"web-{number}",
            kind=models.WorkloadKind.DEPLOYMENT,
            health_status=models.WorkloadHealthStatus.DEGRADED,
            replicas_desired=2,
            containers=[models.ReportedContainer(name="app", image="web:1.4")],
        )
        for number in range(3)
    ]
    report = models.ReportedSnapshot(reported_at=dt.datetime.now(dt.UTC), workloads=items)
    applied = call(token, "clusters", "replace_workloads", cluster.id, body=report).report
    assert (applied.created, applied.updated, applied.deleted) == (3, 0, 0)

    again = call(token, "clusters", "replace_workloads", cluster.id, body=report)
    assert again.error.details[0].reason == "STALE_REPORT"
    page = call(
        token, "clusters", "list_workloads", cluster.id, filter_="field['name'] != 'web-1'"
    )  # fmt: skip
    assert [workload.name for workload in page.workloads] == ["web-0", "web-2"]
    assert page.workloads[0].cpu_used_millicores is None
    total = call(token, "clusters", "summarize_workloads", cluster.id).summary.total
    assert (total.workloads, total.by_health_status["DEGRADED"]) == (3, 3)
