"""Requests to an API server, without the values that differ between requests.

`requests.json` has the answers of real servers to each request of the collector; the replayed
server rejects any other. `probes.json` has their answers to wrong and unusual requests. `make
live-kubernetes` writes both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("requests.json")
PROBES = Path(__file__).with_name("probes.json")

_NAMESPACE = re.compile(r"/namespaces/[^/]+/")
# Of these the value matters not, or is not ours.
_ANY = {"resourceVersion", "timeoutSeconds", "limit", "continue"}


class Exchange(NamedTuple):
    """A server's answer. `says` is the kind of the object, or of the first object of a watch."""

    status: int
    content_type: str
    says: str


def signature(
    path: str, query: Mapping[str, str], headers: Mapping[str, str], *, exact: bool = False
) -> str:
    """Return one line for all requests that a server treats alike; `exact`, with all values."""
    found = {name.lower(): value for name, value in headers.items()}
    parameters = "&".join(
        f"{name}={'…' if name in _ANY and not exact else value}"
        for name, value in sorted(query.items())
    )
    path = _NAMESPACE.sub("/namespaces/{namespace}/", path)
    accept, encoding = found.get("accept", ""), found.get("accept-encoding", "")
    return f"{path}?{parameters} Accept: {accept} Accept-Encoding: {encoding}"


def answered() -> dict[str, dict[str, Exchange]]:
    """Return the answer of each version of Kubernetes, by signature."""
    return _read(TABLE)


def probed() -> dict[str, dict[str, Exchange]]:
    """Return the same of the probes, by exact signature."""
    return _read(PROBES)


def _read(path: Path) -> dict[str, dict[str, Exchange]]:
    table = json.loads(path.read_text())
    return {
        request: {version: Exchange(*answer) for version, answer in answers.items()}
        for request, answers in table.items()
    }
