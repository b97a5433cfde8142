"""deploy/ci: failures of the exchange, secrets in the output, and facts, with the real steps."""

from __future__ import annotations

import contextlib
import http.client
import json
import shlex
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from tests.docs.keyless import REQUEST_TOKEN, STATE, Jobs, keyless_jobs
from tests.e2e.backend import document
from tests.support.installation import ROOT
from tests.support.issuer import respond
from tests.support.pipelines import JobFailedError, Pipeline

FUNCTIONS = ROOT / "deploy/ci/infra.sh"
ACTION = "acme/infra-service/deploy/ci/github@main"
FACTS = "acme/infra-service/deploy/ci/github/facts@main"
LOCK_FILE = 'provider "registry.terraform.io/hashicorp/aws" {\n  version = "5.31.0"\n}\n'
MODULES_FILE = '{"Modules":[{"Key":"own","Source":"./own","Dir":"own"}]}'


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with keyless_jobs(tmp_path_factory.mktemp("ci")) as jobs:
        yield jobs


def exchange(jobs: Jobs, **inputs: str) -> list[dict[str, Any]]:
    """Return the steps of a job on GitHub that only exchanges its token."""
    given = {"url": jobs.server.url, "policy": jobs.policies["GITHUB"][1], "state": STATE}
    return [{"uses": ACTION, "with": given | inputs}]


def fails(pipeline: Pipeline, steps: list[dict[str, Any]]) -> str:
    """Return the log of a job that fails and exports nothing."""
    with pytest.raises(JobFailedError):
        pipeline.github({"steps": steps})
    assert pipeline.exported.read_text() == ""
    return pipeline.log


def exported(pipeline: Pipeline) -> dict[str, str]:
    return dict(line.split("=", 1) for line in pipeline.exported.read_text().splitlines())


def test_the_template_has_the_text_of_the_functions() -> None:
    """A template of GitLab brings no other file to a job: copy the changed text."""
    _, template = yaml.safe_load_all((ROOT / "deploy/ci/gitlab/template.yml").read_text())

    assert template[".infra"]["before_script"] == [FUNCTIONS.read_text(), "infra_token"]


TRACED = ("bash", "--noprofile", "--norc", "-xveo", "pipefail")


@pytest.mark.parametrize("shell", [(), TRACED])
def test_github_prints_secrets_only_to_mask_them(jobs: Jobs, shell: tuple[str, ...]) -> None:
    """With and without a trace: a value is masked before any other line, and never printed."""
    pipeline = jobs.pipeline("GITHUB", "masked")

    pipeline.github({"steps": [*exchange(jobs), {"run": "echo done"}]}, shell)

    secrets = [jobs.identities[-1], exported(pipeline)["TF_HTTP_PASSWORD"]]
    assert pipeline.masks == secrets
    shown = [line for line in pipeline.log.splitlines() if not line.startswith("::add-mask::")]
    assert pipeline.log.startswith("::add-mask::") or shell
    assert [line for line in shown for s in [*secrets, REQUEST_TOKEN] if s in line] == []
    assert exported(pipeline).keys() == {
        f"TF_HTTP_{name}"
        for name in ("USERNAME", "PASSWORD", "ADDRESS", "LOCK_ADDRESS", "UNLOCK_ADDRESS")
    }


SHELLS = [("sh", "-e"), ("sh", "-ex"), ("bash", "-xeo", "pipefail")]
if shutil.which("busybox"):  # the shell of the images on Alpine
    SHELLS += [("busybox", "sh", "-ex")]


@pytest.mark.parametrize("shell", SHELLS)
def test_gitlab_prints_no_secret(jobs: Jobs, shell: tuple[str, ...]) -> None:
    pipeline = jobs.pipeline("GITLAB", "traced")
    configuration = jobs.configuration("GITLAB")
    configuration["apply"]["script"] = ['printenv TF_HTTP_PASSWORD >"token"', "true"]

    pipeline.gitlab(configuration, "apply", shell)

    token = (pipeline.directory / "token").read_text().strip()
    assert token.startswith("iss_")
    assert token not in pipeline.log
    assert jobs.identities[-1] not in pipeline.log
    assert ("+ true" in pipeline.log) == ("-e" not in shell)  # the user's trace goes on


def test_arguments_of_programs_have_no_secrets(jobs: Jobs) -> None:
    """Arguments are visible to all processes of the machine."""
    pipeline = jobs.pipeline("GITHUB", "arguments")
    curl, stub = shutil.which("curl"), pipeline.directory / "bin" / "curl"
    stub.parent.mkdir()
    log = shlex.quote(str(pipeline.directory / "arguments.log"))
    stub.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec {curl} "$@"\n')
    stub.chmod(0o755)
    pipeline.environment["PATH"] = f"{stub.parent}:{pipeline.environment['PATH']}"

    pipeline.github({"steps": exchange(jobs)})

    lines = (pipeline.directory / "arguments.log").read_text()
    assert len(lines.splitlines()) == 2
    for secret in (jobs.identities[-1], exported(pipeline)["TF_HTTP_PASSWORD"], REQUEST_TOKEN):
        assert secret not in lines


def test_a_job_without_the_permission_is_told_its_name(jobs: Jobs) -> None:
    pipeline = jobs.pipeline("GITHUB", "permission")
    del pipeline.environment["ACTIONS_ID_TOKEN_REQUEST_URL"]
    del pipeline.environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]

    assert "::error::The job cannot request an identity token. Add 'id-token: write'" in fails(
        pipeline, exchange(jobs)
    )


def test_a_refused_request_for_the_identity_fails_the_job(jobs: Jobs) -> None:
    pipeline = jobs.pipeline("GITHUB", "identity")
    pipeline.environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = "of another run"

    log = fails(pipeline, exchange(jobs))

    assert f"::error::{jobs.issuer.url}/oidc responded with 401." in log
    assert "of another run" not in log


def test_lifetime_is_an_input(jobs: Jobs) -> None:
    pipeline = jobs.pipeline("GITHUB", "lifetime")
    pipeline.github({"steps": exchange(jobs, ttl="600")})
    assert "expires in 600 seconds" in pipeline.log

    log = fails(jobs.pipeline("GITHUB", "lifetime"), exchange(jobs, ttl="3601"))
    assert "responded with 400. ttl: the policy allows at most 3600 seconds." in log


@pytest.mark.parametrize("state", ["payments", "/live", "payments/", "a b/c", "a/b\nEVIL=1", ""])
def test_a_malformed_state_is_refused(jobs: Jobs, state: str) -> None:
    log = fails(jobs.pipeline("GITHUB", "state"), exchange(jobs, state=state))

    assert "::error::The state is not component/environment" in log


@pytest.mark.parametrize("body", [
    b"<html>Welcome</html>", b"{}", b"", b"[]", b'{"access_token": "iss_a\\nEVIL=1"}',
    b'{"access_token": null}',
])  # fmt: skip
def test_a_response_of_another_service_is_refused(jobs: Jobs, body: bytes) -> None:
    with served(lambda handler: respond(handler, body)) as url:
        log = fails(jobs.pipeline("GITHUB", "other"), exchange(jobs, url=url, **audience(jobs)))

    assert f"::error::{url}/v1/oauth/token responded without a token." in log
    assert "EVIL" not in log


def test_an_error_cannot_start_a_command_of_the_runner(jobs: Jobs) -> None:
    body = json.dumps({"error_description": "no\n::add-mask::x\n::error::y"}).encode()
    with served(lambda handler: respond(handler, body, 400)) as url:
        log = fails(jobs.pipeline("GITHUB", "hostile"), exchange(jobs, url=url, **audience(jobs)))

    assert "\n::error::y" not in log
    assert "\n::add-mask::x" not in log


def test_a_busy_service_is_tried_again(jobs: Jobs) -> None:
    """A proxy that refuses twice, and then passes requests on."""
    refusals = iter([503, 503])

    def busy(handler: BaseHTTPRequestHandler) -> None:
        status = next(refusals, None)
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if status is not None:
            respond(handler, b"{}", status, **{"Retry-After": "1"})
            return
        connection = http.client.HTTPConnection("127.0.0.1", jobs.server.port, timeout=60)
        with contextlib.closing(connection):
            kind = {"Content-Type": handler.headers["Content-Type"]}
            connection.request("POST", handler.path, body, kind)
            answer = connection.getresponse()
            respond(handler, answer.read(), answer.status)

    pipeline = jobs.pipeline("GITHUB", "busy")
    with served(busy) as url:
        pipeline.github({"steps": exchange(jobs, url=url, **audience(jobs))})
        assert exported(pipeline)["TF_HTTP_ADDRESS"] == f"{url}/api/v1/state/at/{STATE}"

    assert next(refusals, None) is None
    assert "::error::" not in pipeline.log


def test_facts_belong_to_the_last_version_of_the_job(jobs: Jobs) -> None:
    """Another job stores a version in between."""
    pipeline = jobs.pipeline("GITHUB", "facts")
    pipeline.github({"steps": exchange(jobs, state="shop/payments/live")})
    token, path = exported(pipeline)["TF_HTTP_PASSWORD"], f"/api/v1/state/at/shop/{STATE}"
    for serial, pushed_by in ((1, token), (2, token), (3, jobs.server.token("state:write"))):
        kind = {"Content-Type": "application/json"}
        sent = jobs.server.request("POST", path, document(serial), token=pushed_by, headers=kind)
        assert sent.status == 200
    configuration = pipeline.directory / "configuration"
    (configuration / ".terraform/modules").mkdir(parents=True)
    (configuration / ".terraform.lock.hcl").write_text(LOCK_FILE)
    (configuration / ".terraform/modules/modules.json").write_text(MODULES_FILE)

    facts = [{"uses": FACTS, "with": {"directory": "configuration"}}]
    pipeline.github({"steps": facts}, TRACED)

    assert f"Recorded facts of shop/{STATE} with version 2." in pipeline.log
    shown = [line for line in pipeline.log.splitlines() if not line.startswith("::add-mask::")]
    assert token not in "\n".join(shown)
    listed = "/api/v1/states?filter=field%5B'application'%5D='shop'"
    (state,) = [s["id"] for s in jobs.server.request("GET", listed, token=token).json()["states"]]
    recorded = jobs.server.request("GET", f"/api/v1/states/{state}/versions/2/facts", token=token)
    found = recorded.json()["facts"]
    assert [provider["version"] for provider in found["providers"]] == ["5.31.0"]
    assert [module["key"] for module in found["modules"]] == ["own"]
    assert found["repository"] == "octo/infra"


def test_facts_of_a_component_in_many_applications(jobs: Jobs) -> None:
    """In more applications than a page of a list has states."""
    token, kind = jobs.server.token("state:write"), {"Content-Type": "application/json"}
    for number in range(50):
        path = f"/api/v1/state/at/area-{number}/ledger/live"
        sent = jobs.server.request("POST", path, document(1), token=token, headers=kind)
        assert sent.status == 200
    pipeline = jobs.pipeline("GITHUB", "many")
    pipeline.github({"steps": exchange(jobs, state="zone/ledger/live")})
    own, path = exported(pipeline)["TF_HTTP_PASSWORD"], "/api/v1/state/at/zone/ledger/live"
    jobs.server.request("POST", path, document(1), token=own, headers=kind)

    pipeline.github({"steps": [{"uses": FACTS}]})

    assert "Recorded facts of zone/ledger/live with version 1." in pipeline.log


@pytest.mark.parametrize(("token", "message"), [
    ("iss_expired", r"/v1/whoami responded with 401\. The token is mistyped"),
    ("", r"/v1/whoami responded with 401\. "),
])  # fmt: skip
def test_facts_without_a_valid_token_fail(jobs: Jobs, token: str, message: str) -> None:
    pipeline = jobs.pipeline("GITHUB", "expired")
    address = f"{jobs.server.url}/api/v1/state/at/{STATE}"
    given = {"TF_HTTP_ADDRESS": address, "TF_HTTP_PASSWORD": token}

    with pytest.raises(JobFailedError, match=message):
        pipeline.github({"env": given, "steps": [{"uses": FACTS}]})


def test_facts_of_a_missing_state_fail(jobs: Jobs) -> None:
    """As after an apply whose configuration has no backend."""
    pipeline = jobs.pipeline("GITHUB", "missing")
    steps = [*exchange(jobs, state="payments/elsewhere"), {"uses": FACTS}]

    with pytest.raises(JobFailedError, match=r'configuration has .backend "http" \{\}'):
        pipeline.github({"steps": steps})


def audience(jobs: Jobs) -> dict[str, str]:
    """Return the input of a job whose address is not the issuer's audience."""
    return {"audience": jobs.server.url}


@contextlib.contextmanager
def served(answer: Any) -> Iterator[str]:
    """Run a server that answers every POST; return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer(self)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
