"""The official client and raw posts against a live server: a script of 60 calls."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from infra_service.mcp.tools import TOOLS
from tests.infra_service.mcp.conftest import (
    ACCEPT,
    MOST_BYTES,
    PREFIX,
    READING,
    STATELESS,
    WITH_INITIALIZE,
)
from tests.infra_service.mcp.official import connected
from tests.infra_service.mcp.test_tools import ARGUMENTS, NOBODY
from tests.support.server import LiveServer, live_server

TOKENS, THREADS, ROUNDS = 10, 20, 5


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    return server.token(*READING, "state:write")


async def script(server: LiveServer, token: str, mode: str) -> tuple[str, int]:
    """Call every tool twice, then call it wrongly; return the version and the number of calls."""
    from mcp import MCPError  # noqa: PLC0415 - takes a second to load

    calls = 0
    headers = {"Authorization": f"Bearer {token}"}
    async with connected(f"{server.url}/mcp", headers, mode) as client:
        version = client.session.protocol_version
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        for name in [*TOOLS, *TOOLS]:
            result = await client.call_tool(name, ARGUMENTS[name])
            text = result.content[0].text
            assert result.is_error is (NOBODY in json.dumps(ARGUMENTS[name])), text
            assert result.is_error or json.loads(text)["notice"]
            calls += 1
        wrong = await client.call_tool("get_state", {"state_id": "wrong"})
        assert wrong.is_error
        with pytest.raises(MCPError) as refused:
            await client.call_tool("drop_tables", {})
        assert refused.value.error.code == -32602
        calls += 2
    return str(version), calls


def raw(server: LiveServer, token: str, name: str, arguments: Any, version: str) -> httpx2.Response:
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    headers = {
        "authorization": f"Bearer {token}", "accept": ACCEPT, "mcp-protocol-version": version,
        "mcp-method": "tools/call", "mcp-name": name,
    }  # fmt: skip
    if version == STATELESS:
        meta = {f"{PREFIX}protocolVersion": version, f"{PREFIX}clientCapabilities": {}}
        params["_meta"] = meta
    body = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
    return httpx2.post(f"{server.url}/mcp", json=body, headers=headers, timeout=30)


def test_sixty_calls(server: LiveServer, token: str) -> None:
    modern, first = asyncio.run(script(server, token, "auto"))
    legacy, second = asyncio.run(script(server, token, "legacy"))
    raws = 0
    for version in (STATELESS, WITH_INITIALIZE):
        for name in list(TOOLS)[:2]:
            response = raw(server, token, name, ARGUMENTS[name], version)
            assert response.status_code == 200
            assert response.json()["id"] == name
            raws += 1

    assert (modern, legacy) == (STATELESS, WITH_INITIALIZE)
    assert first + second + raws == 60


def test_threads_see_only_the_rows_of_their_tokens(server: LiveServer, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    names = [f"team{number}" for number in range(TOKENS)]
    ids: dict[str, str] = {}
    tokens: dict[str, str] = {}
    body = json.dumps({"version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": []})
    for name in names:
        path = f"{server.url}/api/v1/state/at/{name}/production"
        assert httpx2.post(path, content=body, headers=headers).status_code == 200
        entries = httpx2.get(
            f"{server.url}/api/v1/components",
            params={"filter": f"field['slug'] = '{name}'"},
            headers=headers,
        )
        ids[name] = entries.json()["components"][0]["id"]
    (*secrets,) = server.run_commands(
        *(
            ("issue_token", "--user", "operator", "--name", name, "--json",
             "--scopes", "state:read", "--component", ids[name])
            for name in names
        )
    )  # fmt: skip
    for name, text in zip(names, secrets, strict=True):
        tokens[name] = json.loads(text)["secret"]
    barrier = threading.Barrier(THREADS)

    def ask(number: int) -> set[tuple[str, str]]:
        """Return the pairs of a token's team and the teams that it sees."""
        barrier.wait(30)
        seen = set()
        for round_ in range(ROUNDS):
            name = names[(number + round_) % TOKENS]
            version = (STATELESS, WITH_INITIALIZE)[round_ % 2]
            response = raw(server, tokens[name], "list_states", {}, version)
            assert response.status_code == 200, response.text
            assert len(response.content) <= MOST_BYTES
            answer = json.loads(response.json()["result"]["content"][0]["text"])
            seen |= {(name, each["component_slug"]) for each in answer["states"]}
        return seen

    with ThreadPoolExecutor(THREADS) as pool:
        pairs = set().union(*pool.map(ask, range(THREADS)))

    assert pairs == {(name, name) for name in names}
