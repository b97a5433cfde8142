"""Run schemathesis, which compares a live server with the OpenAPI document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from apikeys.scopes import Scope
from tests.support.installation import ROOT
from tests.support.server import LiveServer

CONFIG = Path(__file__).with_name("schemathesis.toml")
DOCUMENT = ROOT / "docs" / "reference" / "openapi.yaml"
#: The settings that disable the rate limits of the server.
UNLIMITED = {"RATE_LIMIT_TOKEN": "0", "RATE_LIMIT_FAILURES": "0"}


def prepare(server: LiveServer) -> dict[str, str]:
    """Create data on the server, and return the configuration for schemathesis."""
    user = ("--user", "operator", "--name", "fuzz", "--scopes", ",".join(Scope.values), "--json")
    demo = ("--states", "12", "--clusters", "2", "--workloads", "30")
    keys, token, _ = server.manage_all(
        ("seed_apikeys", *user), ("issue_token", *user), ("seed_demo", *demo)
    )
    (key,), issued = json.loads(keys)["api_keys"], json.loads(token)
    states = server.request("GET", "/api/v1/states", token=issued["secret"]).json()["states"]
    return {
        "FUZZ_URL": server.url,
        "FUZZ_API_KEY": key["secret"],
        "FUZZ_ACCESS_TOKEN": issued["secret"],
        "FUZZ_OWN_IDS": f"{key['id']},{issued['id']}",
        "FUZZ_STATES": ",".join(state["id"] for state in states[:3]),
    }


def run(known: dict[str, str], output: IO[str], *options: str, config: Path = CONFIG) -> int:
    """Run schemathesis with these options, and return its exit code (0 without findings).

    The environment is minimal, because schemathesis searches it for proxies at each request.
    """
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [program, "--config-file", config, "run", DOCUMENT, "--no-color", *options],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **known, "PYTHONPATH": str(ROOT)},
        check=False,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode


def server_errors(server: LiveServer) -> list[str]:
    """Return the lines about server errors in the server's log."""
    bad = ('"status":500', "unhandled_exception", "internal_error")
    return [line for line in server.log.read_text().splitlines() if any(b in line for b in bad)]
