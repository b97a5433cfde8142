"""The commands of docs/how-to/install-on-kubernetes.md in a pod, with this machine as the pod.

`make live-kubernetes` runs all commands of the page on a real control plane.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.walk import ROOT, matches, steps
from tests.support.certificates import self_signed
from tests.support.installation import Installation
from tests.support.issuer import Key

PAGE = (ROOT / "docs" / "how-to" / "install-on-kubernetes.md").read_text()
KUBECTL = """#!/bin/sh
while [ "$1" != -- ]; do shift; done; shift
cd {root} && exec "$@"
"""
TRUST = """
[[issuers]]
name = "github"
kind = "GITHUB"
audience = "https://infra.example.com"

[[trust_policies]]
name = "deploy acme/infra"
issuer = "github"
owner = "pipelines"
scopes = ["state:read", "state:write"]
conditions = [
  { claim = "repository_id", equals = "651234" },
  { claim = "repository_owner_id", equals = "9919" },
  { claim = "environment", equals = "production" },
]
"""
CLUSTER = """
[[issuers]]
name = "cluster"
kind = "KUBERNETES"
url = "https://kubernetes.default.svc"
audience = "https://infra.example.com"
"""


class Person:
    """A person with kubectl, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.pod = directory / "person", directory / "pod"
        self.directory.mkdir()
        self.pod.mkdir()
        self.installation = Installation(directory / "installation")
        self.installation.create_database()
        self.installation.manage("migrate", "--verbosity", "0")
        programs = directory / "programs"
        programs.mkdir()
        (programs / "kubectl").write_text(KUBECTL.format(root=ROOT))
        (programs / "kubectl").chmod(0o755)
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**self.installation.environment, "PATH": path}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command.replace("/tmp", str(self.pod))],
            cwd=self.directory, env=self.environment, check=False, capture_output=True, text=True,
        )  # fmt: skip


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    (tmp_path / "installation").mkdir()
    person = Person(tmp_path)
    yield person
    person.installation.drop_database()


@pytest.mark.long
def test_commands_in_the_pod_print_the_output_of_the_page(person: Person) -> None:
    (person.directory / "trust.toml").write_text(TRUST)
    executed = [step for step in steps(PAGE) if " exec " in step.command]
    assert len(executed) == 2

    for step in executed:
        done = person.run(step.command)
        assert done.returncode == 0, done.stderr
        assert matches(step.output, done.stdout.splitlines()), done.stdout


@pytest.mark.long
def test_files_of_an_issuer_are_sent_to_the_pod(person: Person) -> None:
    (command,) = re.findall(r"^```sh\n(tar .+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    authority, _key = self_signed(person.directory, "authority.example")
    authority.rename(person.directory / "ca.pem")
    keys = {"keys": [Key("a").public]}
    (person.directory / "keys.json").write_text(json.dumps(keys))
    trust = person.directory / "trust.toml"
    trust.write_text(CLUSTER + 'ca_file = "ca.pem"\n')

    # With standard input, relative paths do not lead to files of the person.
    stdin = next(step.command for step in steps(PAGE) if "/dev/stdin" in step.command)
    refused = person.run(stdin)
    assert refused.returncode == 1
    assert "issuers 1: " in refused.stderr
    assert "/dev/ca.pem" in refused.stderr

    sent = person.run(command)
    assert re.fullmatch(r"issuer cluster iss-\S+ created\n", sent.stdout), sent.stderr
    trust.write_text(
        CLUSTER.replace('"cluster"', '"unreachable"') + 'inline_keys_file = "keys.json"\n'
    )
    sent = person.run(command)
    assert re.fullmatch(r"issuer unreachable iss-\S+ created\n", sent.stdout), sent.stderr
