"""Fixtures of the token exchange tests: an issuer on loopback, a policy, and a pipeline."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import pytest
from django.test import Client

from apikeys.models import AuditEvent, Issuer, TrustPolicy, User
from tests.support.issuer import CONDITIONS, IssuerServer, issuer_server

PATH: Final = "/v1/oauth/token"
FORM: Final = "application/x-www-form-urlencoded"
GRANT: Final = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
}
LOOPBACK: Final = ipaddress.ip_network("127.0.0.0/8")
#: The response to every refused assertion, whatever the reason.
REFUSED: Final = {
    "error": "invalid_grant",
    "error_description": "The token was refused. The audit log contains the reason.",
}


def refusal(answer: Any) -> dict[str, str]:
    """Return the refusal without the request id, which its description ends with."""
    body: dict[str, str] = answer.json()
    description, _, request_id = body["error_description"].rpartition(" Request id: ")
    assert request_id == f"{answer['X-Request-ID']}."
    return {**body, "error_description": description}


class Pipeline(Client):
    """A job on a platform: it has the platform's tokens, and knows which policy is its own."""

    def __init__(self, server: IssuerServer, policy: TrustPolicy) -> None:
        super().__init__(raise_request_exception=False)
        self.server, self.policy_id = server, policy.pk
        self.kind: str = policy.issuer.kind

    @property
    def policy(self) -> TrustPolicy:
        return TrustPolicy.objects.select_related("issuer").get(pk=self.policy_id)

    @property
    def issuer(self) -> Issuer:
        return self.policy.issuer

    def token(self, **claims: Any) -> str:
        return self.server.token(self.kind, **claims)

    def exchange(self, token: str | None = None, **more: str) -> Any:
        """Exchange a token of the platform, by default a new token."""
        given = {**GRANT, "client_id": self.policy_id, **more}
        given["subject_token"] = self.token() if token is None else token
        return self.post(PATH, urlencode(given), FORM)


class PipelineOf(Protocol):
    """``pipeline_of("GITLAB")``: a pipeline that a policy trusts, which may have more columns."""

    def __call__(self, kind: str = "GITHUB", /, **policy: Any) -> Pipeline: ...


@pytest.fixture(scope="session")
def issuer_on_loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IssuerServer]:
    with issuer_server(tmp_path_factory.mktemp("issuer")) as server:
        yield server


@pytest.fixture
def pipeline_of(
    operator: User, issuer_on_loopback: IssuerServer, settings: Any
) -> Iterator[PipelineOf]:
    settings.ISSUER_NETWORKS = [LOOPBACK]

    def make(kind: str = "GITHUB", /, **policy: Any) -> Pipeline:
        of_issuer = policy.pop("of_issuer", {})
        issuer = Issuer.objects.create(**issuer_on_loopback.columns(kind, **of_issuer))
        values = {
            "name": "deploy",
            "owner": operator,
            "scopes": ["state:read", "state:write"],
            "conditions": CONDITIONS[kind],
        }
        made = TrustPolicy.objects.create(issuer=issuer, **{**values, **policy})
        return Pipeline(issuer_on_loopback, made)

    yield make
    issuer_on_loopback.reset()


@pytest.fixture
def pipeline(pipeline_of: PipelineOf) -> Pipeline:
    """A job of GitHub Actions that may read and write states."""
    return pipeline_of()


def why() -> str:
    """Return the reason of the last refusal from the audit log."""
    event = AuditEvent.objects.filter(action="assertion.refuse").latest("id")
    reason: str = event.details["reason"]
    return reason
