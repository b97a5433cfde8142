"""A report's body: packed, damaged, of another type, too large, or no JSON."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import Any

import pytest
from django.test import RequestFactory

from infra_service.lib.api import memory
from tests.conftest import error_reason
from tests.workloads.agent import Agent, nothing_is_stored
from tests.workloads.records import (
    gzipped,
    healthy,
    snapshot_body,
)
from workloads.models import Cluster
from workloads.reporting.bodies import read_body
from workloads.reporting.errors import InvalidReport
from workloads.reporting.incoming import read_report

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_gzip_is_accepted(agent: Agent, cluster: Cluster, encoding: str) -> None:
    assert (
        agent.put(gzipped(snapshot_body(0, [healthy()])), Content_Encoding=encoding).json()[
            "report"
        ]["created"]
        == 1
    )


def test_gzip_in_several_members_is_accepted(agent: Agent) -> None:
    body = snapshot_body(0, [healthy()])

    response = agent.put(gzipped(body[:20]) + gzipped(body[20:]), Content_Encoding="gzip")

    assert response.status_code == 200


def test_gzip_in_too_many_members_is_rejected(agent: Agent, cluster: Cluster) -> None:
    response = agent.put(gzipped(b"") * 1001, Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_GZIP")
    assert nothing_is_stored(cluster)


def test_identity_encoding_is_accepted(agent: Agent) -> None:
    assert agent.put(snapshot_body(), Content_Encoding="identity").status_code == 200


@pytest.mark.parametrize("damage", [
    lambda body: body[:-1], lambda body: body[:20], lambda _: b"{}",
    lambda body: body[:30] + b"\0\0\0\0" + body[34:],
    lambda body: body + b"trailing", lambda body: body[:-8] + b"\0\0\0\0" + body[-4:],
])  # fmt: skip
def test_damaged_gzip_is_rejected(agent: Agent, cluster: Cluster, damage: Any) -> None:
    body = gzipped(snapshot_body(0, [healthy(f"w-{n}") for n in range(50)]))

    response = agent.put(damage(body), Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_GZIP")
    assert nothing_is_stored(cluster)


def test_empty_gzip_is_rejected(agent: Agent) -> None:
    response = agent.put(gzipped(b""), Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_JSON")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_other_encoding_is_rejected(agent: Agent, encoding: str) -> None:
    response = agent.put(b" ", Content_Encoding=encoding)

    assert response.status_code == 415
    assert error_reason(response) == "CONTENT_ENCODING_UNSUPPORTED"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_other_type_is_rejected(agent: Agent, content_type: str) -> None:
    response = agent.put(snapshot_body(), content_type)

    assert (response.status_code, error_reason(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_type_with_a_parameter_is_accepted(agent: Agent) -> None:
    assert agent.put(snapshot_body(), "Application/JSON; charset=utf-8").status_code == 200


def test_gzip_bomb_is_rejected(agent: Agent, cluster: Cluster, settings: Any) -> None:
    bomb = gzip.compress(b" " * (64 * MEGABYTE), 9)
    assert len(bomb) < MEGABYTE // 8

    response = agent.put(bomb, Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    limit = response.json()["error"]["details"][0]["metadata"]
    assert limit == {"limit_bytes": str(settings.WORKLOADS_MAX_BYTES)}
    assert nothing_is_stored(cluster)


def test_a_report_of_50_megabytes(agent: Agent, cluster: Cluster) -> None:
    response = agent.put(snapshot_body()[:-1] + b" " * (50 * MEGABYTE) + b"}")

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    assert nothing_is_stored(cluster)


def test_the_limit_is_inclusive(agent: Agent, settings: Any) -> None:
    body = snapshot_body()
    settings.WORKLOADS_MAX_BYTES = len(body)
    assert agent.put(body).status_code == 200
    assert agent.put(gzipped(body + b" "), Content_Encoding="gzip").status_code == 413


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "element", "end"),
    [
        (b'{"workloads": [', b"1", b"]}"),
        (b'{"workloads": [', b"{}", b"]}"),
        (b'{"workloads": [{"containers": [{"running": [', b'"a"', b"]}]}]}"),
    ],
)
def test_memory_of_many_elements_is_reserved(
    start: bytes, element: bytes, end: bytes, rf: RequestFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = start + b",".join([element] * 1_000_000) + end
    reserved: list[int] = []
    monkeypatch.setattr(memory, "reserve", reserved.append)
    body = read_body(rf.put("/", sent), len(sent))

    tracemalloc.start()
    try:
        with pytest.raises(InvalidReport):
            read_report(body, complete=True)
        assert tracemalloc.get_traced_memory()[1] < sum(reserved)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", [b" ", b"{", b"\xff", b"[" * 100_000, b'{"reported_at": "\xff"}',
                                  b'{"workloads": ' + b"[" * 100_000])  # fmt: skip
def test_non_json_is_rejected(agent: Agent, cluster: Cluster, body: bytes) -> None:
    for response in (agent.put(body), agent.patch(body)):
        assert response.status_code == 400
        assert error_reason(response) in {"INVALID_JSON", "INVALID_FIELDS"}
    assert nothing_is_stored(cluster)
