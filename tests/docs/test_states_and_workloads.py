"""docs/reference/states-and-workloads.md: its lists, fields and examples match the code."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.urls import resolve
from rest_framework.viewsets import GenericViewSet

from filterlang.fields import field_set
from infra_service.change_history.api.serializers import ChangeSerializer
from infra_service.demo.workloads import load_clusters, load_workloads
from states.api.catalogue_serializers import ComponentSerializer
from states.api.resource_serializers import ResourceEntrySerializer
from states.api.serializers import LockSerializer, StateSerializer
from tests.conftest import ClientWith
from tools.bench.bulk_states import load_states
from workloads.api.cluster_serializers import ClusterSerializer
from workloads.api.serializers import (
    ContainerSerializer,
    ImageSerializer,
    WorkloadSerializer,
)
from workloads.models import Cluster

PAGE = (
    Path(__file__).resolve().parents[2] / "docs" / "reference" / "states-and-workloads.md"
).read_text()


CLUSTER = "01941f29-7c00-7f4a-8576-ad8ac4247500"


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


LISTS = re.findall(r"^\| `(/api/v1/\S+)` \| `(\S+)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("path", "scope", "order", "fields"), LISTS)
def test_documented_lists_match(path: str, scope: str, order: str, fields: str) -> None:
    match = resolve(path.replace("{cluster_id}", "x"))
    view: type[GenericViewSet[Any]] = match.func.cls  # type: ignore[attr-defined]

    assert view.required_scopes["list"] == scope  # type: ignore[attr-defined]
    assert list(view.page_key) == code(order)  # type: ignore[attr-defined]
    assert list(field_set(view.filterset_class)) == code(fields)  # type: ignore[attr-defined]


def test_there_are_ten_lists() -> None:
    assert len(LISTS) == 10


@pytest.mark.parametrize(
    ("name", "serializer"),
    [
        ("states[]", StateSerializer),
        ("component", ComponentSerializer),
        ("resources[]", ResourceEntrySerializer),
        ("changes[]", ChangeSerializer),
        ("images[]", ImageSerializer),
        ("cluster", ClusterSerializer),
        ("workloads[]", WorkloadSerializer),
    ],
)
def test_documented_fields_match(name: str, serializer: Any) -> None:
    table = PAGE.split(f"| field of `{name}` |")[1].split("\n\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(serializer().fields)


def test_documented_parts_match() -> None:
    for serializer in (LockSerializer, ContainerSerializer):
        assert ", ".join(f"`{name}`" for name in serializer().fields) in PAGE


def masked(shown: Any, documented: Any) -> Any:
    """Return the response, with "…" where the document has it."""
    if documented == "…":
        return documented
    if isinstance(shown, dict) and isinstance(documented, dict):
        return {name: masked(value, documented.get(name)) for name, value in shown.items()}
    if isinstance(shown, list) and isinstance(documented, list):
        return [masked(*pair) for pair in zip(shown, documented, strict=True)]
    return shown


def test_examples_match_their_schemas(client_with: ClientWith) -> None:
    """Examples are of the demo data, which is deterministic except for a cluster's id."""
    load_states(8, lambda _done: None)
    load_clusters(1)
    load_workloads(4, 1, lambda _done: None)
    page = PAGE.replace(CLUSTER, str(Cluster.objects.get().pk))
    client = client_with("state:read", "state:admin", "cluster:read")
    examples = re.findall(r"```console\n\$ (curl .+)\n((?:.+\n)+?)```", page)

    for command, documented in examples:
        words = shlex.split(command)
        address = next(word for word in words if word.startswith("$BASE_URL"))
        path = address.removeprefix("$BASE_URL")
        data = [words[at + 1] for at, w in enumerate(words) if w in {"-d", "--data-urlencode"}]
        if "-G" in words:
            query = dict(pair.split("=", 1) for pair in data)
            answer = client.get(path, query)
        else:
            method = words[words.index("-X") + 1]
            answer = client.send(method, path, json.loads(data[0]))
        expected = json.loads(documented)
        assert answer.status_code == 200
        assert masked(answer.json(), expected) == expected
    assert len(examples) == 4
