"""What a request to an API server is, without what differs from one to the next.

`requests.json` has what real servers answered to each that the collector makes; the replayed server
refuses any other. `make live-kubernetes` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("requests.json")

_NAMESPACE = re.compile(r"/namespaces/[^/]+/")
# Of these the value matters not, or is not ours.
_ANY = {"resourceVersion", "timeoutSeconds", "limit", "continue"}


class Exchange(NamedTuple):
    """What a server answered. `says` is the kind of the object, or of a watch's first one."""

    status: int
    content_type: str
    says: str


def signature(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return one line for all requests that a server treats alike."""
    found = {name.lower(): value for name, value in headers.items()}
    parameters = "&".join(
        f"{name}={'…' if name in _ANY else value}" for name, value in sorted(query.items())
    )
    path = _NAMESPACE.sub("/namespaces/{namespace}/", path)
    accept, encoding = found.get("accept", ""), found.get("accept-encoding", "")
    return f"{path}?{parameters} Accept: {accept} Accept-Encoding: {encoding}"


def answered() -> dict[str, dict[str, Exchange]]:
    """Return what each version of Kubernetes answered, by signature."""
    table = json.loads(TABLE.read_text())
    return {
        request: {version: Exchange(*answer) for version, answer in answers.items()}
        for request, answers in table.items()
    }
