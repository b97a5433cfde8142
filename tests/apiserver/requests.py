"""What a request to an API server is, without what differs from one to the next.

`requests.json` has what real servers answered to each that the collector makes; the replayed server
refuses any other. `probes.json` has what they made of requests that are wrong, or odd. Both are
written by `make live-kubernetes`.
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
    """What a server answered. `says` is the kind of the object, or of a watch's first one."""

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
    """Return what each version of Kubernetes answered, by signature."""
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
