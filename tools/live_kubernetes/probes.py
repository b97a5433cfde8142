"""Record a real API server's responses to requests that the collector never sends."""

from __future__ import annotations

import json

from tests.apiserver.requests import PROBES, Exchange, probed, signature
from tools.live_kubernetes.api import Api
from tools.live_kubernetes.relay import text

_JSON = "application/json"
_AS = f"{_JSON};as=%s;g=meta.k8s.io;v=v1"
ACCEPTS = (
    "",
    "*/*",
    _JSON,
    *(_AS % form for form in ("PartialObjectMetadata", "PartialObjectMetadataList", "Table")),
    *(f"{_AS % form},{_JSON}" for form in ("PartialObjectMetadata", "PartialObjectMetadataList")),
    f"{_AS % 'Nothing'}",
    f"{_AS % 'Nothing'},{_JSON}",
    f"{_JSON};as=Table;g=apps;v=v1",
    "text/html",
    f"text/html,{_JSON}",
)
SETS = "/apis/apps/v1/replicasets"
REQUESTS: tuple[tuple[str, dict[str, str]], ...] = (
    (SETS, {}),
    (SETS, {"watch": "1", "timeoutSeconds": "2"}),
    ("/api/v1/namespaces/kube-system", {}),
    ("/apis/apps/v1/nothing", {}),
)
ODD: tuple[tuple[str, dict[str, str]], ...] = (
    (SETS, {"limit": "x"}),
    (SETS, {"timeoutSeconds": "x"}),
    (SETS, {"limit": "1", "continue": "odd"}),
    (SETS, {"limit": "1", "continue": "odd", "resourceVersion": "1"}),
    (SETS, {"watch": "1", "resourceVersion": "x", "timeoutSeconds": "2"}),
)


def probe(api: Api, version: str) -> int:
    """Send all requests, write the responses to a file, and return their number."""
    found: dict[str, dict[str, Exchange]] = probed() if PROBES.exists() else {}
    requested = [(path, query, accept) for path, query in REQUESTS for accept in ACCEPTS]
    requested += [(path, query, _JSON) for path, query in ODD]
    for path, query, accept in requested:
        parameters = "&".join(f"{name}={value}" for name, value in query.items())
        status, kind, body = api.answer(f"{path}?{parameters}", accept)
        exchange = Exchange(status, kind.partition(";")[0], text(body))
        headers = {"Accept": accept}
        found.setdefault(signature(path, query, headers, exact=True), {})[version] = exchange
    PROBES.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return len(requested)
