"""The collector's rights, as docs/how-to/collector-rbac.yaml says, and its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.live_kubernetes.api import Api
from tests.server import ROOT

RBAC = ROOT / "docs/how-to/collector-rbac.yaml"
RBAC_OF_ONE = ROOT / "docs/how-to/collector-rbac-namespace.yaml"
_ACCOUNTS = "/api/v1/namespaces/infra-service/serviceaccounts"
_ACCOUNT = f"{_ACCOUNTS}/workload-collector"
_BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/workload-collector"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def grant(api: Api, path: Path = RBAC) -> None:
    api.apply(documents(path))


def withdraw(api: Api) -> None:
    api.delete(_BINDING)


def token(api: Api, account: str = _ACCOUNT) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200, "audiences": []},
    }
    made: str = api.post(f"{account}/token", request)["status"]["token"]
    return made


def renew(api: Api, path: Path) -> None:
    """Make the account anew, which ends its old tokens, and write a token of it."""
    api.delete(_ACCOUNT)
    grant(api)
    path.write_text(token(api) + "\n")
