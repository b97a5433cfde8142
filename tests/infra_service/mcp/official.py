"""The official client of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from mcp import Client


@asynccontextmanager
async def connected(url: str, headers: dict[str, str], mode: str = "auto") -> AsyncIterator[Client]:
    """Yield a client that has discovered the server, or with ``legacy`` initialized a connection.

    ``url`` is that of the endpoint. The SDK leaves the given HTTP client open.
    """
    from mcp import Client  # noqa: PLC0415 - takes a second to load
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - the same

    async with httpx2.AsyncClient(headers=headers, timeout=30) as http_client:
        transport = streamable_http_client(url, http_client=http_client)
        async with Client(transport, mode=mode) as client:
            yield client
