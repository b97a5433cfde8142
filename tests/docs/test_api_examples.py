"""The examples of the references, with curl against a live server."""

import datetime as dt
import json
import re
import uuid
from pathlib import Path

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Shell, Walk
from tests.e2e.backend import Backend
from tests.support.server import LiveServer

REFERENCE = ROOT / "docs" / "reference"
FIXTURES = ROOT / "tests" / "states" / "fixtures"
EVERYTHING = "state:read,state:write,state:admin"


def test_examples_cover_the_life_of_a_key(place: Path, service: LiveServer) -> None:
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(days=4)).date()
    words = {"http://127.0.0.1:8000": service.url, "2027-11-25T": f"{soon}T", **manage_py()}
    walk = Walk(place, readers(place, service.environment), words)

    assert walk.through(REFERENCE / "api-keys.md")


def test_examples_cover_the_history(place: Path, service: LiveServer) -> None:
    token, secrets = service.tokens(EVERYTHING, f"{EVERYTHING},state:secrets")
    backend = Backend(service, token)
    for name in ("before", "after"):
        assert backend.push((FIXTURES / f"{name}.tfstate").read_bytes()).status == 200
    (state,) = (
        state
        for state in service.request("GET", "/api/v1/states?page_size=100", token=token).json()[
            "states"
        ]
        if state["component_id"] == str(backend.component_id)
    )
    environment = {
        **readers(place, {}),
        "BASE": service.url,
        "ID": state["id"],
        "COMPONENT": state["component_id"],
        "ENVIRONMENT": state["environment_id"],
        "AUTH": f"Authorization: Bearer {token}",
        "SECRETS": f"Authorization: Bearer {secrets}",
        "JSON": "Content-Type: application/json",
    }
    words = {"01a1fd5d-e387-7732-9391-3a8d8bc7ec7b": state["id"]}

    assert Walk(place, environment, words).through(REFERENCE / "state-history.md")
    assert (place / "old.tfstate").read_bytes() == (FIXTURES / "before.tfstate").read_bytes()


def test_the_last_step_of_a_pipeline(place: Path, service: LiveServer) -> None:
    text = (ROOT / "docs" / "how-to" / "provider-versions.md").read_text()
    _, last_step, question = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    token, name = service.token("state:read", "state:write"), f"network-{uuid.uuid4().hex[:8]}"
    document = (FIXTURES / "before.tfstate").read_bytes()
    address = f"/api/v1/state/at/{name}/production"
    assert service.request("POST", address, document, token=token).status == 200
    environment = {**readers(place, {}), "BASE_URL": service.url, "TOKEN": token}
    shell = Shell(place, environment)
    try:
        user = "git -c user.name=ada -c user.email=ada@example.com"
        code, (commit,) = shell.run(
            f"git init -q . && {user} commit -q --allow-empty -m x && git rev-parse HEAD"
        )
        assert code == 0
        version = 'provider "registry.terraform.io/hashicorp/aws" {\n  version = "4.67.0"\n}\n'
        for lock_file in (None, version):  # without providers, and with a provider
            if lock_file:
                (place / ".terraform.lock.hcl").write_text(lock_file)
            code, printed = shell.run(last_step.replace("'network'", f"'{name}'"))
            assert code == 0, printed
            assert json.loads(printed[0])["facts"]["commit"] == commit
        assert shell.run(question) == (0, [f"{name} production"])
    finally:
        shell.close()
