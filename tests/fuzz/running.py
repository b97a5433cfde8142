"""schemathesis against a live server: generated requests, and every answer held to the document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from apikeys.scopes import Scope
from tests.server import ROOT, LiveServer

CONFIG = Path(__file__).with_name("schemathesis.toml")
DOCUMENT = ROOT / "docs" / "reference" / "openapi.yaml"


def prepare(server: LiveServer) -> dict[str, str]:
    """Fill the server with data, and return what schemathesis is to know of it."""
    every = ",".join(Scope.values)
    user = ("--user", "operator", "--name", "fuzz", "--scopes", every, "--json")
    demo = ("--states", "12", "--clusters", "2", "--workloads", "30")
    keys, token, _ = server.manage_all(
        ("seed_apikeys", *user), ("issue_token", *user), ("seed_demo", *demo)
    )
    (key,), issued = json.loads(keys)["api_keys"], json.loads(token)
    return {
        "FUZZ_URL": server.url,
        "FUZZ_API_KEY": key["secret"],
        "FUZZ_ACCESS_TOKEN": issued["secret"],
        "FUZZ_OWN_IDS": f"{key['id']},{issued['id']}",
    }


def run(known: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run schemathesis with these options; its output is for people."""
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", CONFIG]
    return subprocess.run(
        [*command, "run", DOCUMENT, *options],
        cwd=ROOT,
        env={**os.environ, **known, "PYTHONPATH": str(ROOT)},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
