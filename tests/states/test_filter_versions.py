"""GET /api/v1/states by the versions of providers and modules of the current versions."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from django.db import connection

from apikeys.actors import Actor
from infra_service.lib.database.bounded_pages import reading
from states.keeping import pruning
from states.models import State, StateVersion, UsedVersion
from tests.states.conftest import Backend, document

AWS = "registry.terraform.io/hashicorp/aws"
OWN = "registry.acme.example/acme/cloud"
VPC = "registry.terraform.io/terraform-aws-modules/vpc/aws"
MODULE = "terraform-aws-modules/vpc/aws"


def lock_file(**versions: str) -> str:
    sources = {"aws": AWS, "own": OWN, "tofu": "registry.opentofu.org/hashicorp/aws"}
    return "".join(
        f'provider "{sources[name]}" {{\n  version = "{version}"\n}}\n'
        for name, version in versions.items()
    )


def record_facts(
    backend: Backend, number: int = 1, *, modules: Sequence[str] = (), **versions: str
) -> None:
    entries = [{"Key": str(n), "Source": VPC, "Version": v} for n, v in enumerate(modules, 1)]
    entries += [{"Key": "git", "Source": "git::https://git.example/x"}]
    facts = {"lock_file": lock_file(**versions), "modules_file": {"Modules": entries}}
    answer = backend.client.send("PUT", f"{backend.root}/versions/{number}/facts", facts)
    assert answer.status_code == 200, answer.content


@pytest.fixture
def states(client_with: Any) -> dict[str, Backend]:
    """States with the provider versions in their names."""
    client = client_with("state:read", "state:write")
    made = {name: Backend(client) for name in ("4.67.0", "5.0.0-beta1", "5.0.0", "10.1.0", "none")}
    for name, backend in made.items():
        backend.push(document())
        if name != "none":
            record_facts(backend, aws=name, modules=[name])
    return made


def listed(states: dict[str, Backend], text: str, client: Any = None) -> list[str]:
    names = {str(backend.record.pk): name for name, backend in states.items()}
    client = client or states["none"].client
    found = client.items("/api/v1/states", "states", filter=text)
    return [names.get(state["id"], "?") for state in found]


PROVIDER = "field['provider.hashicorp/aws.version']"


REQUESTS = {
    "< '5'": ["4.67.0", "5.0.0-beta1"],
    "<= 5": ["4.67.0", "5.0.0-beta1", "5.0.0"],
    "= '5.0'": ["5.0.0"],
    "> '5.0.0'": ["10.1.0"],
    ">= '5.0.0-beta1'": ["5.0.0-beta1", "5.0.0", "10.1.0"],
    # A missing version differs from every version, as with labels.
    "!= '5.0.0'": ["4.67.0", "5.0.0-beta1", "10.1.0", "none"],
    "EXISTS": ["4.67.0", "5.0.0-beta1", "5.0.0", "10.1.0"],
    "IS NULL": ["none"],
    "< '4'": [],
}


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize("what", [PROVIDER, f"field['module.{MODULE}.version']"])
@pytest.mark.parametrize("most", [reading.MOST_ROWS, 0])
def test_versions_are_compared_as_such(states: dict[str, Backend], what: str, most: int) -> None:
    """Both ways: by the rows that name states, and by walking the states."""
    with mock.patch.object(reading, "_few", reading._few if most else lambda *_: None):
        for condition, names in REQUESTS.items():
            assert listed(states, f"{what} {condition}") == names
            assert listed(states, f"NOT ({what} {condition}) OR {what} {condition}") == list(states)
            assert sorted(listed(states, f"NOT {what} {condition}") + names) == sorted(states), (
                condition
            )


def test_version_terms_combine_with_other_terms(states: dict[str, Backend]) -> None:
    one = states["5.0.0"].environment_id
    assert listed(states, f"{PROVIDER} > '4' AND field['environment_id'] = '{one}'") == ["5.0.0"]
    assert listed(states, f"{PROVIDER} >= '5' AND {PROVIDER} < '6'") == ["5.0.0"]
    full = f"field['provider.{AWS}.version']"
    assert listed(states, f"{full} = '5.0.0'") == ["5.0.0"]
    assert listed(states, "field['provider.hashicorp/random.version'] < '5'") == []


def test_only_the_current_version_counts(states: dict[str, Backend]) -> None:
    backend = states["4.67.0"]
    backend.push(document(2))
    assert "4.67.0" not in listed(states, f"{PROVIDER} EXISTS")
    record_facts(backend, 2, aws="5.5.0")
    assert listed(states, f"{PROVIDER} = '5.5.0'") == ["4.67.0"]
    assert "4.67.0" not in listed(states, f"{PROVIDER} < '5'")
    # A late report for an older version changes nothing; new facts on this version do.
    record_facts(backend, 1, aws="4.0.0")
    assert listed(states, f"{PROVIDER} = '5.5.0'") == ["4.67.0"]
    record_facts(backend, 2, own="1.0.0", modules=["1.0.0", "1.0.0", "2.0.0"])
    assert listed(states, f"field['provider.{OWN}.version'] = '1'") == ["4.67.0"]
    for version in "12":
        assert listed(states, f"field['module.{MODULE}.version'] = {version}") == ["4.67.0"]
    assert UsedVersion.objects.filter(state=backend.record).count() == 3
    # A restored version is a new version.
    restored = backend.call("/versions/2:restore").json()["version"]["number"]
    assert listed(states, f"field['provider.{OWN}.version'] EXISTS") == []
    record_facts(backend, restored, tofu="5.5.1")
    assert listed(states, f"{PROVIDER} = '5.5.1'") == ["4.67.0"]


def test_they_go_with_their_version(states: dict[str, Backend], settings: Any) -> None:
    states["4.67.0"].push(document(2))
    StateVersion.objects.update(created_at="2020-01-01T00:00:00Z")
    settings.STATE_VERSIONS_KEPT = 1
    before = UsedVersion.objects.count()

    assert sum(done.versions for done in pruning.prune(actor=Actor(name="test"))) == 1

    assert UsedVersion.objects.count() == before - 2


def test_the_binding_holds(states: dict[str, Backend], client_with: Any) -> None:
    one = states["4.67.0"]
    bound = client_with("state:read", bound_component_ids=[str(one.component_id)])

    assert listed(states, f"{PROVIDER} EXISTS", bound) == ["4.67.0"]
    assert listed(states, f"{PROVIDER} > '5'", bound) == []
    assert listed(states, f"{PROVIDER} IS NULL", bound) == []


def test_deleted_states_are_hidden(states: dict[str, Backend]) -> None:
    State.objects.filter(pk=states["5.0.0"].record.pk).update(deleted_at="2020-01-01T00:00:00Z")
    assert listed(states, f"{PROVIDER} = 5") == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about the order of a collation")
def test_the_order_is_that_of_bytes(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT collation_name FROM information_schema.columns WHERE "
            "table_name = 'states_usedversion' AND column_name IN ('source', 'sort_key')"
        )
        assert cursor.fetchall() == [("C",), ("C",)]


def test_incomplete_provider_names(states: dict[str, Backend]) -> None:
    for name in ("provider", "provider.hashicorp/aws", "provider.version"):
        answer = states["none"].client.get("/api/v1/states", {"filter": f"field['{name}'] < '5'"})
        assert answer.status_code == 400
        assert "write provider.<source>.version" in answer.json()["error"]["message"]
    text = f"field['provider.{uuid.uuid4()}.version'] < '5'"
    assert listed(states, text) == []
