"""Service accounts with the permissions in our manifests, and their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.installation import ROOT
from tools.live_kubernetes.api import Api

Rights = set[tuple[str, str, str, str]]

_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@dataclass(frozen=True)
class Account:
    """A service account, and the binding with the same name."""

    manifest: Path
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}"

    def documents(self) -> list[dict[str, Any]]:
        return documents(self.manifest)

    def grant(self, api: Api) -> None:
        api.apply(self.documents())

    def withdraw(self, api: Api) -> None:
        api.delete(f"{_BINDINGS}/{self.name}")

    def token(self, api: Api, **spec: object) -> str:
        """Request a token. The audience is the API server, unless ``spec`` names others."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200, "audiences": [], **spec},
        }
        made: str = api.post(f"{self.path}/token", request)["status"]["token"]
        return made

    def make_anew(self, api: Api) -> None:
        """Recreate the account, which revokes its tokens and changes its uid."""
        api.delete(self.path)
        self.grant(api)


COLLECTOR = Account(ROOT / "docs/how-to/collector-rbac.yaml", "infra-service", "workload-collector")
AGENT = Account(ROOT / "deploy/agent/account.yaml", "infra-agent", "infra-agent")
RBAC_OF_ONE = ROOT / "docs/how-to/collector-rbac-namespace.yaml"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def rights(rules: list[dict[str, Any]]) -> Rights:
    """Return the permissions in rules: API group, resource, object name or "", and verb."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def reviewed(api: Api, namespace: str) -> Rights:
    """Return the permissions of the token's account in a namespace, from the API server."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    return rights(api.post(_REVIEWS, review)["status"]["resourceRules"])
