"""The commands of the how-to guide on changes, with the client and reports of a cluster."""

import datetime as dt
import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from tests.docs.conftest import readers
from tests.docs.walk import ROOT, Walk
from tests.states.samples import instance, resource, state
from tests.support.server import LiveServer

JSON = {"Content-Type": "application/json"}


def thing(name: str, **attributes: Any) -> dict[str, Any]:
    return resource(name, instance({"id": name, **attributes}))


def send(service: LiveServer, token: str, method: str, path: str, body: Any) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = service.request(method, path, content, token=token, headers=JSON)
    assert answer.status in {200, 201}, answer.body
    return answer.json() if answer.body else None


def test_what_changed(place: Path, service: LiveServer) -> None:
    unique = uuid.uuid4().hex[:8]
    words = {
        "checkout": f"checkout-{unique}",
        "production": f"production-{unique}",
        "prod-eu-1": f"prod-eu-{unique}",
    }
    token = service.token("state:read", "state:write", "cluster:read", "cluster:write")
    address = f"/api/v1/state/at/{words['checkout']}/{words['production']}"
    for serial, content in enumerate(
        ((thing("cache"), thing("web", size=1)), (thing("web", size=2),)), 1
    ):
        body = json.dumps({**json.loads(state(*content)), "serial": serial}).encode()
        send(service, token, "POST", address, body)
    keys = str(service.directory / "service.env")
    manage_py = [sys.executable, str(ROOT / "manage.py"), "--env-file", keys]
    subprocess.run([*manage_py, "index_states"], env=service.environment, check=True)
    cluster = {"cluster": {"name": words["prod-eu-1"]}}
    made = send(service, token, "POST", "/api/v1/clusters", cluster)
    path = f"/api/v1/clusters/{made['cluster']['id']}/workloads"
    start = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
    for minute, (image, health) in enumerate(
        (("web:1.4", "HEALTHY"), ("web:1.5", "HEALTHY"), ("web:1.5", "ERROR"))
    ):
        container = {"name": "app", "image": image}
        web = {
            "namespace": "shop", "name": "web", "kind": "Deployment", "health_status": health,
            "replicas_desired": 1, "replicas_ready": 1, "containers": [container],
        }  # fmt: skip
        moment = (start + dt.timedelta(minutes=minute)).isoformat()
        send(service, token, "PUT", path, {"reported_at": moment, "workloads": [web]})
    programs = place / "bin"
    programs.mkdir()
    (programs / "infra").symlink_to(ROOT / "deploy/client/infra")
    found = readers(place, {})
    environment = {
        **found,
        "PATH": f"{programs}:{found['PATH']}",
        "BASE_URL": service.url,
        "TOKEN": token,
        "INFRA_URL": service.url,
        "INFRA_TOKEN": token,
    }

    walk = Walk(place, environment, words)

    assert walk.through(ROOT / "docs/how-to/see-what-changed.md") == 5
