"""The reference of tools, and the guide for clients, against the service."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from infra_service.mcp.tools import TOOLS, Tool
from tests.docs.test_references import reference
from tests.docs.walk import ROOT
from tests.infra_service.mcp.official import connected
from tests.support.server import LiveServer, live_server

GUIDE = (ROOT / "docs" / "how-to" / "connect-an-assistant.md").read_text()
CONFIGURATIONS = re.findall(r"^```json\n(.+?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def row(tool: Tool) -> str:
    """Return the row of the reference that describes a tool."""
    required = tool.definition["inputSchema"].get("required", [])
    names = tool.argument_names.split()
    arguments = [f"**`{name}`**" if name in required else f"`{name}`" for name in names]
    prefix = "POST " if "identifier" in names else ""
    scope = tool.scope.value
    return f"| `{tool.name}` | `{scope}` | {', '.join(arguments)} | `{prefix}{tool.path}` |"


def test_documented_tools_match() -> None:
    table = reference("assistant-tools").partition("## Responses")[0]

    assert re.findall(r"^\| `.+$", table, re.MULTILINE) == [row(tool) for tool in TOOLS.values()]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    command = re.search(r"^\.venv/bin/python manage\.py (issue_token.+)$", GUIDE, re.MULTILINE)
    assert command is not None
    scopes = re.search(r"--scopes (\S+)", command[1])
    assert scopes is not None
    return server.token(*scopes[1].split(","))


@pytest.mark.parametrize("text", CONFIGURATIONS, ids=["Claude Code", "Cursor", "VS Code"])
def test_the_configuration_of_each_client_connects(
    server: LiveServer, token: str, text: str
) -> None:
    given: dict[str, Any] = json.loads(text)
    entry = (given.get("mcpServers") or given["servers"])["infra"]
    headers = {
        name: re.sub(r"\$\{[^}]+\}", token, value) for name, value in entry["headers"].items()
    }
    url = entry["url"].replace("https://infra.example", server.url)

    async def names() -> list[str]:
        async with connected(url, headers) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(names()) == [name for name in TOOLS if name != "search_audit_log"]


def test_the_command_that_tests_the_connection(server: LiveServer, token: str) -> None:
    (command,) = re.findall(r"^\$ (curl .+(?:\n    .+)?)$", GUIDE, re.MULTILINE)
    command = command.replace("https://infra.example", server.url)

    done = subprocess.run(
        ["bash", "-c", command],
        env={"PATH": "/usr/bin:/bin", "INFRA_TOKEN": token},
        capture_output=True,
        check=True,
        timeout=30,
    )

    assert json.loads(json.loads(done.stdout)["result"]["content"][0]["text"])["states"] == []
