"""The jobs of docs/how-to/keyless-pipelines.md, with a right and a wrong token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.conftest import needs_terraform
from tests.docs.keyless import STATE, Jobs, blocks, keyless_jobs
from tests.docs.walk import ROOT
from tests.support.issuer import Key
from tests.support.pipelines import JobFailedError, Pipeline

CONFIGURATION = """
terraform {
  backend "http" {}
}
resource "terraform_data" "a" { input = "%s" }
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with keyless_jobs(tmp_path_factory.mktemp("jobs")) as jobs:
        yield jobs


def github(jobs: Jobs, *, is_trusted: bool = True) -> Pipeline:
    """Run the job without its terraform commands; it fails unless the step does."""
    pipeline = jobs.pipeline("GITHUB", "github", is_trusted=is_trusted)
    steps = jobs.configuration("GITHUB")["jobs"]["apply"]["steps"]
    used = [step for step in steps if step.get("uses", "").partition("@")[0].endswith("ci/github")]
    pipeline.github({"steps": used})
    return pipeline


def gitlab(jobs: Jobs, *, is_trusted: bool = True) -> Pipeline:
    pipeline = jobs.pipeline("GITLAB", "gitlab", is_trusted=is_trusted)
    configuration = jobs.configuration("GITLAB")
    configuration["apply"]["script"] = ['test "${TF_HTTP_PASSWORD#iss_}" != "$TF_HTTP_PASSWORD"']
    pipeline.gitlab(configuration, "apply")
    return pipeline


def script(jobs: Jobs, kind: str, *, is_trusted: bool) -> Pipeline:
    """Run the script of a platform beside a copy of the functions."""
    pipeline = jobs.pipeline(kind, kind.lower())
    (pipeline.directory / "infra.sh").write_text((ROOT / "deploy/ci/infra.sh").read_text())
    proof = jobs.token(kind, is_trusted=is_trusted)
    (pipeline.directory / "pod-token").write_text(proof)
    agent = pipeline.directory / "buildkite-agent"
    expected = (
        f"oidc request-token --audience {jobs.server.url} --claim organization_id "
        "--claim pipeline_id"
    )
    # The agent's own program prints the token.
    agent.write_text(f'#!/bin/sh\ntest "$*" = "{expected}" && cat pod-token\n')
    agent.chmod(0o700)
    text = jobs.meant(blocks("sh")[("BUILDKITE", "KUBERNETES").index(kind)])
    text = text.replace("fed-…", jobs.policies[kind][1]).replace(
        "/var/run/infra/token", "pod-token"
    )
    pipeline.environment["PATH"] += f":{pipeline.directory}"
    pipeline.gitlab({"job": {"script": [text, "printenv TF_HTTP_ADDRESS"]}}, "job", ("sh",))
    return pipeline


def buildkite(jobs: Jobs, *, is_trusted: bool = True) -> Pipeline:
    return script(jobs, "BUILDKITE", is_trusted=is_trusted)


def kubernetes(jobs: Jobs, *, is_trusted: bool = True) -> Pipeline:
    return script(jobs, "KUBERNETES", is_trusted=is_trusted)


PLATFORMS = {"GITHUB": github, "GITLAB": gitlab, "BUILDKITE": buildkite, "KUBERNETES": kubernetes}


def test_every_platform_of_the_page_is_run(jobs: Jobs) -> None:
    assert set(jobs.policies) == set(PLATFORMS)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_trusted_job_gets_a_token(jobs: Jobs, kind: str) -> None:
    done = PLATFORMS[kind](jobs)

    assert f"Token for {STATE}: state:read state:write, expires in 3600 seconds." in done.log


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_refused_job_fails_with_the_request_id(jobs: Jobs, kind: str) -> None:
    with pytest.raises(JobFailedError) as failed:
        PLATFORMS[kind](jobs, is_trusted=False)

    (told,) = blocks("text")
    found = re.search(r"(http\S+/v1/oauth/token.*Request id: )(\w{32})\.", str(failed.value))
    assert found is not None, failed.value
    assert jobs.meant(told).startswith(found[1])
    assert _refusal(jobs, found[2])["details"]["reason"] == "conditions_unmet"


def _refusal(jobs: Jobs, request_id: str) -> Any:
    """Return the event of the audit log with this request id."""
    path = f"/api/v1/audit-events?filter=field%5B%27request_id%27%5D%3D%27{request_id}%27"
    answer = jobs.server.request("GET", path, token=jobs.server.token("audit:read"))
    (event,) = answer.json()["audit_events"]
    assert event["action"] == "assertion.refuse"
    return event


@pytest.mark.terraform
@needs_terraform
@pytest.mark.parametrize("kind", ["GITHUB", "GITLAB"])
def test_a_keyless_job_applies_and_records_facts(jobs: Jobs, kind: str) -> None:
    """The whole job of the page with the real terraform; then a second one without changes."""
    configuration = jobs.configuration(kind)
    logs, numbers = [], []
    for _ in range(2):
        pipeline = jobs.pipeline(kind, "apply")
        (pipeline.directory / "main.tf").write_text(CONFIGURATION % kind)
        if kind == "GITHUB":
            assert pipeline.github(configuration["jobs"]["apply"]) == 4
        else:
            pipeline.gitlab(configuration, "apply")
        logs.append(pipeline.log)
        numbers += re.findall(rf"Recorded facts of {STATE} with version (\d+)", pipeline.log)

    assert "Apply complete! Resources: " in logs[0]
    assert f"This job has stored no version of {STATE}" in logs[1]
    reader = jobs.server.token("state:read")
    (state,) = jobs.server.request("GET", "/api/v1/states", token=reader).json()["states"]
    path = f"/api/v1/states/{state['id']}/versions/{numbers[0]}/facts"
    facts = jobs.server.request("GET", path, token=reader).json()["facts"]
    assert len(numbers) == 1
    assert facts["recorded_by"] == "pipelines"
    assert facts["commit"]
    assert facts["repository"] == "octo/infra"


def test_inline_keys_are_rotated_without_a_gap(jobs: Jobs) -> None:
    """As the page says: both keys are trusted until the old one is removed."""
    (text,) = (text for text in blocks("toml") if "inline_keys_file" in text)
    old, new = jobs.issuer.keys[0], Key("two")
    accepted = []
    for trusted in ([old], [old, new], [new], [old]):
        keys = {"keys": [key.public for key in trusted]}
        (jobs.directory / "keys.json").write_text(json.dumps(keys))
        jobs.trust(text)
        for key in (old, new):
            jobs.issuer.keys[0] = key
            accepted.append(_works(jobs))
    jobs.issuer.reset()

    assert accepted == [True, False, True, True, False, True, True, False]


def _works(jobs: Jobs) -> bool:
    try:
        kubernetes(jobs)
    except JobFailedError:
        return False
    return True
