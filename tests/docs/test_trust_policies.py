"""docs/reference/trust-policies.md and the how-to of pipelines without a secret."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import get_resolver

from apikeys.api import filters
from apikeys.api.federation_serializers import IssuerSerializer, TrustPolicySerializer
from apikeys.federation.conditions import faults
from apikeys.federation.kinds import policy_faults, writes
from apikeys.federation.platforms import PLATFORMS
from filterlang.fields import field_set
from tests.docs.conftest import manage_py, readers
from tests.docs.test_references import reference
from tests.docs.walk import ROOT, Walk
from tests.support.server import LiveServer

PAGE = reference("trust-policies")
HOW_TO = ROOT / "docs" / "how-to" / "keyless-pipelines.md"


def test_documented_paths_match() -> None:
    documented = set(re.findall(r"^\| `\w+ (/\S+)` \|", PAGE, re.MULTILINE))

    assert len(documented) == 7
    for path in documented:
        assert get_resolver().resolve(path.replace("{id}", "x")).func


@pytest.mark.parametrize(
    ("title", "serializer"),
    [("Issuers", IssuerSerializer), ("Trust policies", TrustPolicySerializer)],
)
def test_documented_fields_match(title: str, serializer: Any) -> None:
    (section,) = re.findall(rf"^## {title}\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(
        serializer().fields
    )


def test_documented_filterable_fields_match() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", PAGE, re.MULTILINE)

    assert {name: re.findall(r"`(\w+)`", fields) for name, fields in rows} == {
        "issuers": list(field_set(filters.IssuerFilters)),
        "trust_policies": list(field_set(filters.TrustPolicyFilters)),
    }


def test_documented_pinned_claims_match() -> None:
    rows = re.findall(r"^\| `([A-Z]+)` \| (.*?) \| (.*?) ?\|$", PAGE, re.MULTILINE)

    assert {kind for kind, _ids, _origins in rows} == set(PLATFORMS)
    for kind, ids, origins in rows:
        platform = PLATFORMS[kind]
        assert tuple(re.findall(r"`(.+?)`", ids)) == platform.ids
        documented = [
            tuple(claim for claim in re.findall(r"`(.+?)`", origin) if claim != "true")
            for origin in origins.split("; ")
            if origin
        ]
        assert tuple(documented) == platform.origins


def test_policies_of_the_how_to_are_valid() -> None:
    texts = re.findall(r"^```toml\n(.*?)^```$", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)
    files = [tomllib.loads(text) for text in texts]

    kinds = []
    for file in files:
        (issuer,), (policy,) = file["issuers"], file["trust_policies"]
        kinds.append(issuer["kind"])
        conditions = policy["conditions"]
        assert faults(conditions, PLATFORMS[issuer["kind"]].ids) == {}
        assert writes(policy["scopes"])
        assert policy_faults(issuer["kind"], conditions, writes=True) == []
    assert kinds == ["GITHUB", "GITLAB", "BUILDKITE", "KUBERNETES"]


def test_each_pipeline_of_the_how_to_is_yaml() -> None:
    texts = re.findall(r"^```yaml\n(.*?)^```$", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)

    github, gitlab, kubernetes = (yaml.safe_load(text) for text in texts)
    assert github["permissions"]["id-token"] == "write"
    assert gitlab["include"][0]["inputs"]["url"] == "https://infra.example.com"
    assert kubernetes["spec"]["serviceAccountName"] == "deployer"


def test_the_reference_is_walked(place: Path, service: LiveServer) -> None:
    words = {"http://127.0.0.1:8000": service.url, **manage_py()}

    assert Walk(place, readers(place, service.environment), words).through(
        ROOT / "docs" / "reference" / "trust-policies.md"
    )


def test_the_how_to_is_walked(place: Path, service: LiveServer) -> None:
    assert Walk(place, readers(place, service.environment), manage_py()).through(HOW_TO)
