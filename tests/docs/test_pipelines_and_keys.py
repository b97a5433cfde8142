"""Guides for pipelines and stuck locks, walked against a live server."""

import datetime as dt
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.conftest import manage_py, needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.backend import Backend
from tests.e2e.terraform import Terraform
from tests.support.pipelines import JobFailedError, Pipeline
from tests.support.server import LiveServer

COMPONENT, ENVIRONMENT = "payments", "live"
ONE = 'resource "terraform_data" "a" { input = "%s" }\n'


def issued(service: LiveServer) -> dict[str, str]:
    """Issue the tokens and the key of the document; return their secrets."""
    bound = ("--component", COMPONENT, "--environment", ENVIRONMENT)
    common = ("--user", "operator", "--json", *bound, "--name", "pipeline", "--scopes")
    token = ("issue_token", "--kind", "service", *common)
    written, read, key = service.run_commands(
        (*token, "state:read,state:write"),
        (*token, "state:read"),
        ("seed_apikeys", *common, "apikey:write,state:read,state:write"),
    )
    return {
        "TF_STATE_TOKEN": json.loads(written)["secret"],
        "TF_STATE_READ_TOKEN": json.loads(read)["secret"],
        "INFRA_KEY": json.loads(key)["api_keys"][0]["secret"],
    }


@pytest.mark.terraform
@needs_terraform
def test_documented_pipelines_work(place: Path, service: LiveServer) -> None:
    next_year = (dt.datetime.now(dt.UTC) + dt.timedelta(days=365)).isoformat()
    (writer,) = service.tokens("state:write")
    words = {"http://127.0.0.1:8000": service.url, "isp_…": writer, **manage_py()}
    words["2027-11-01T00:00:00Z"] = next_year
    walk = Walk(place, readers(place, service.environment), words)
    assert walk.through(ROOT / "docs/how-to/ci.md")
    address = f"/api/v1/state/at/{COMPONENT}/{ENVIRONMENT}"
    given = {"TF_STATE": service.url + address, "INFRA": service.url, **issued(service)}
    pipeline = Pipeline(place, given)
    reader = pipeline.values["TF_STATE_READ_TOKEN"]
    configuration = place / "main.tf"

    def stored() -> Any:
        document = service.request("GET", address, token=reader).json()
        return document["resources"][0]["instances"][0]["attributes"]["input"]["value"]

    configuration.write_text(ONE % "github")
    workflow = yaml.safe_load((place / ".github/workflows/terraform.yml").read_text())
    job = workflow["jobs"]["apply"]
    assert pipeline.github(job) == 3
    assert stored() == "github"

    configuration.write_text(ONE % "minted")
    (token_step,) = yaml.safe_load((place / "token-step.yml").read_text())
    del job["env"]["TF_HTTP_PASSWORD"]
    job["steps"].insert(0, token_step)
    assert pipeline.github(job) == 4
    assert stored() == "minted"

    steps, key = {**job, "steps": [token_step]}, pipeline.values["INFRA_KEY"]
    pipeline.values["INFRA_KEY"] = "isk_unknown"
    pipeline.exported.write_text("")
    with pytest.raises(JobFailedError, match=r'no token: (?s:.*)"request_id":\s*"\w{32}"'):
        pipeline.github(steps)
    assert pipeline.exported.read_text() == ""
    pipeline.values["INFRA_KEY"] = key

    configuration.write_text(ONE % "gitlab")
    gitlab = yaml.safe_load((place / ".gitlab-ci.yml").read_text())
    pipeline.gitlab(gitlab, "plan")
    assert stored() == "minted"
    pipeline.gitlab(gitlab, "apply")
    assert stored() == "gitlab"


@pytest.mark.terraform
@needs_terraform
def test_a_stuck_lock(place: Path, service: LiveServer) -> None:
    token, writer = service.tokens("state:read,state:admin,audit:read", "state:read,state:write")
    backend = Backend(service, writer)
    tf = Terraform(place / "network", backend.address, writer)
    tf.write(ONE % "a")
    tf.run("init")
    tf.apply()
    tf.write(
        ONE % "a" + 'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n'
        '    command = "touch working; exec sleep 60"\n  }\n}\n'
    )
    killed = tf.start("apply", "-auto-approve")
    while not (tf.directory / "working").exists():
        assert killed.poll() is None
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    credentials = {"TF_HTTP_USERNAME": "token", "TF_HTTP_PASSWORD": writer}
    held = backend.holder()
    assert held is not None
    words = {
        "http://127.0.0.1:8000": service.url,
        "isp_…": token,
        "95fbd66a-e378-a0c7-cc59-b576cc759358": held["ID"],
    }
    walk = Walk(place, {**readers(place, {}), **credentials}, words)

    assert walk.through(ROOT / "docs/how-to/release-a-stuck-lock.md")
    assert backend.holder() is None


@pytest.mark.terraform
@needs_terraform
def test_frozen_state_rejects_changes(place: Path, service: LiveServer) -> None:
    token, writer = service.tokens("state:read,state:admin", "state:read,state:write")
    backend = Backend(service, writer)
    tf = Terraform(place / "network", backend.address, writer)
    tf.write(ONE % "a")
    tf.run("init")
    tf.apply()
    credentials = {"TF_HTTP_USERNAME": "token", "TF_HTTP_PASSWORD": writer}
    this_state = f"field['component_id'] = '{backend.component_id}'"
    words = {
        "http://127.0.0.1:8000": service.url,
        "isp_…": token,
        "field['component'] = 'network' AND field['environment'] = 'production'": this_state,
        # Other tests freeze states of the same service.
        "filter=field['frozen'] = true": f"filter=field['frozen'] = true AND {this_state}",
    }
    walk = Walk(place, {**readers(place, {}), **credentials}, words)

    assert walk.through(ROOT / "docs/how-to/freeze-a-state.md")
