"""Images and their places: ``GET /api/v1/images``, and workloads by the images that they run."""

from __future__ import annotations

import uuid
from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra_service.lib.database.bounded_pages import semi_joins
from infra_service.operations.housekeeping import PARTS
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.workloads.conftest import NewWorkload
from tests.workloads.records import REPORTER, apply, at, place, record, report
from workloads import actions
from workloads.api import images as images_view
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.images import ContainerImages, images_of
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord
from workloads.models import Cluster, Workload
from workloads.models.images import IMAGE, ClusterImage, WorkloadImage

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
IMAGES, FLEET = "/api/v1/images", "/api/v1/workloads"


def runs(name: str, *images: str, **fields: Any) -> WorkloadRecord:
    """Return a workload with a container per image; an image with a digest is running."""
    containers = tuple(
        ContainerRecord(
            f"c{number}", image.partition("@")[0], 0, "running", True,
            (image,) if "@" in image else (),
        )
        for number, image in enumerate(images)
    )  # fmt: skip
    return record(name, containers=containers, **fields)


def names(client: ApiClient, text: str, path: str = FLEET, **query: Any) -> list[str]:
    return [one["name"] for one in client.items(path, "workloads", filter=text, **query)]


def counted(client: ApiClient, **query: Any) -> dict[tuple[str, str, str], tuple[int, int]]:
    items: list[Any] = client.items(IMAGES, "images", **query)
    assert [item["registry"] for item in items] == [
        item["repository"].partition("/")[0] for item in items
    ]
    found = {tuple(i[name] for name in IMAGE): (i["workloads"], i["clusters"]) for i in items}
    assert len(found) == len(items)
    assert list(found) == sorted(found)
    return found  # type: ignore[return-value]  # three texts each


def rows_are_right() -> None:
    """The rows are those that would be made anew of the workloads that are stored."""
    counts: Counter[Any] = Counter()
    links = set()
    for workload in Workload.objects.all():
        images = images_of(msgspec.convert(workload.containers, list[ContainerImages]))
        counts.update((workload.cluster_id, *image) for image in images)
        copied = [getattr(workload, name) for name in sorted(WorkloadImage.copied)]
        links |= {(workload.pk, image.repository, image.digest, *copied) for image in images}
    stored = ClusterImage.objects.values_list("cluster_id", *IMAGE, "workloads")
    assert {tuple(row[:-1]): row[-1] for row in stored} == counts
    columns = ("workload_id", "repository", "digest", *sorted(WorkloadImage.copied))
    linked = list(WorkloadImage.objects.values_list(*columns))
    assert len(linked) == len(links)
    assert set(linked) == links


@pytest.mark.slow
def test_where_does_it_run(reader: ApiClient, cluster: Cluster, other: Cluster) -> None:
    apply(cluster, report(
        0, runs("a", f"nginx:1@{A}"), runs("b", f"nginx:1@{B}", "ghcr.io/x/mesh:2"),
        runs("c", "nginx:2", f"nginx:1@{A}", health_status=HealthStatus.ERROR),
    ))  # fmt: skip
    apply(other, report(0, runs("d", f"nginx:1@{A}"), runs("e", f"mirror.example/nginx@{A}")))
    nginx = "docker.io/library/nginx"

    assert counted(reader) == {
        (nginx, "1", A): (3, 2),
        (nginx, "1", B): (1, 1),
        (nginx, "2", ""): (1, 1),
        ("ghcr.io/x/mesh", "2", ""): (1, 1),
        ("mirror.example/nginx", "", A): (1, 1),
    }
    for text, found in {
        f"field['image.repository'] = '{nginx}'": "cabd",
        "field['image.repository'] = 'nginx'": "cabd",
        "field['image.repository'] IN ('nginx', 'ghcr.io/x/mesh')": "cabd",
        "field['image.repository'] STARTS_WITH 'mirror.example/'": "e",
        "field['image.repository'] != 'nginx'": "e",
        f"field['image.digest'] = '{A}'": "cade",
        f"field['image.digest'] = '{A}' AND field['health_status'] = 'HEALTHY'": "ade",
        f"field['image.digest'] = '{A}' AND field['cluster'] = 'prod-eu-1'": "ca",
        f"field['image.digest'] = '{A}' AND labels['app'] = 'a'": "a",
        f"field['image.digest'] = '{A}' OR field['name'] = 'b'": "cabde",
        f"field['image.digest'] = '{B}' AND field['image.repository'] = 'nginx'": "b",
        f"NOT field['image.digest'] = '{A}'": "b",
        "field['image.digest'] = 'sha256:nothing'": "",
    }.items():
        own = f"/api/v1/clusters/{cluster.pk}/workloads"
        here = "".join(sorted(set(found) & set("abc")))
        for size in (1, 100):
            assert "".join(names(reader, text, page_size=size)) == found, text
            if "'cluster'" not in text:
                assert "".join(names(reader, text, own, page_size=size)) == here, text
        if "'cluster'" not in text:
            summary = reader.get(f"{own}:summary", {"filter": text}).json()["summary"]
            assert summary["total"]["workloads"] == len(here)


def test_no_workload_runs_one_of_several_images(
    reader: ApiClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Citus, a separate statement reads the keys of the workloads."""
    monkeypatch.setattr(semi_joins, "citus", SimpleNamespace(is_used=lambda: True))
    apply(cluster, report(0, runs("a", "nginx:1")))

    assert names(reader, "field['image.repository'] IN ('caddy', 'envoy')") == []


def test_filters_select_images(reader: ApiClient, cluster: Cluster) -> None:
    apply(cluster, report(0, runs("a", f"nginx:1@{A}", "b.example/x:1"), runs("b", f"redis:7@{B}")))

    for text, found in {
        "field['repository'] = 'nginx'": {"docker.io/library/nginx"},
        "field['repository'] IN ('redis', 'b.example/x')": {
            "docker.io/library/redis", "b.example/x"
        },
        "field['repository'] STARTS_WITH 'b.example/'": {"b.example/x"},
        "field['repository'] CONTAINS 'library'": {
            "docker.io/library/nginx", "docker.io/library/redis"
        },
        "field['tag'] = '1'": {"docker.io/library/nginx", "b.example/x"},
        f"field['digest'] = '{B}'": {"docker.io/library/redis"},
        "field['digest'] = ''": {"b.example/x"},
        f"field['digest'] = '{B}' AND field['tag'] = '1'": set(),
    }.items():  # fmt: skip
        images = {repository for repository, *_ in counted(reader, filter=text, page_size=1)}
        assert images == found, text


def test_scope_is_required(anonymous: Client, client_with: ClientWith) -> None:
    assert error_reason(anonymous.get(IMAGES)) == "CREDENTIALS_MISSING"
    assert error_reason(client_with("state:read").get(IMAGES)) == "SCOPE_INSUFFICIENT"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"filter": "field['image'] = 'x'"}, "INVALID_FILTER"),
        ({"filter": "field['digest'] CONTAINS 'x'"}, "INVALID_FILTER"),
        ({"order_by": "tag"}, "INVALID_FIELDS"),
        ({"page_token": "x"}, "INVALID_PAGE_TOKEN"),
    ],
)
def test_invalid_queries_are_rejected(
    reader: ApiClient, query: dict[str, str], reason: str
) -> None:
    answer = reader.get(IMAGES, query)

    assert (answer.status_code, error_reason(answer)) == (400, reason)


def test_deleted_cluster_has_no_images(reader: ApiClient, cluster: Cluster) -> None:
    apply(cluster, report(0, runs("a", "nginx")))
    actions.delete_cluster(cluster_id=cluster.pk, actor=REPORTER)

    assert counted(reader) == {}
    assert not WorkloadImage.objects.exists()


def test_images_of_a_deleted_cluster_are_removed(
    reader: ApiClient, cluster: Cluster, other: Cluster
) -> None:
    apply(cluster, report(0, runs("a", "nginx", "redis"), runs("b", "nginx")))
    apply(other, report(0, runs("a", "nginx")))
    cluster.delete()  # and its workloads, but nothing else

    assert list(PARTS["history"]()) == [5]
    assert counted(reader) == {("docker.io/library/nginx", "latest", ""): (1, 1)}
    rows_are_right()
    assert list(PARTS["history"]()) == []


def test_rows_of_an_earlier_release_get_images(
    reader: ApiClient, cluster: Cluster, workload: NewWorkload
) -> None:
    workload(name="a")  # reported before there were images
    Cluster.objects.update(**dict.fromkeys(("last_report_at", "last_received_at"), at(-1)))
    apply(cluster, report(0, complete=False))
    rows_are_right()
    assert len(counted(reader)) == 1

    # The previous release applies a report at the same time.
    workload(name="b", containers=[{"name": "app", "image": "redis"}])
    Workload.objects.filter(name="a").delete()
    Cluster.objects.update(last_report_at=report(1).reported_at)
    apply(cluster, report(2, complete=False))

    rows_are_right()
    assert list(counted(reader)) == [("docker.io/library/redis", "latest", "")]


def test_invalid_image_names_are_not_listed(reader: ApiClient, cluster: Cluster) -> None:
    apply(cluster, report(0, runs("a", "NOT AN IMAGE", ""), runs("b", "x:1")))

    assert list(counted(reader)) == [("docker.io/library/x", "1", "")]


def test_pages_where_an_image_has_more_rows_than_are_looked_at(
    reader: ApiClient, client_with: ClientWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = [Cluster.objects.create(name=f"c{number}") for number in range(5)]
    for one in clusters:
        apply(one, report(0, runs("a", "a:1", "b:1", "c:1"), runs("b", "c:1")))
    wanted = {
        ("docker.io/library/a", "1", ""): (5, 5),
        ("docker.io/library/b", "1", ""): (5, 5),
        ("docker.io/library/c", "1", ""): (10, 5),
    }
    for most in (5, 6, 7, 10, 11, 15, 16):
        monkeypatch.setattr(images_view, "MOST_ROWS", most)
        for size in (1, 2, 3, 100):
            assert counted(reader, page_size=size) == wanted
        # Its repository is the last: the rows that the page examines before have other
        # repositories.
        last = counted(reader, filter="field['repository'] ENDS_WITH '/c'", page_size=1)
        assert last == dict(list(wanted.items())[2:])
        bound = client_with("cluster:read", bound_cluster_id=clusters[1].pk)
        assert set(counted(bound).values()) == {(1, 1), (2, 1)}


def test_statements_do_not_grow_with_the_rows(reader: ApiClient, cluster: Cluster) -> None:
    def statements(path: str, text: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert reader.get(path, {"filter": text, "page_size": 1}).status_code == 200
        return len(captured)

    reader.get(IMAGES)
    for count in (2, 8):
        workloads = [runs(f"w{n}", "nginx:1", f"x{n}:1") for n in range(count)]
        apply(cluster, report(count, *workloads))
        # The token and the page.
        assert statements(IMAGES, "") == 2
        of_it = "field['image.repository'] = 'nginx' AND field['health_status'] = 'HEALTHY'"
        assert statements(FLEET, of_it) == 2


_IMAGES = st.sampled_from([f"a:1@{A}", f"a:1@{B}", "a:1", f"a:2@{A}", "r.example/b", "NO"])
_WORKLOADS = st.dictionaries(
    st.sampled_from(["u", "v", "w", "x"]),
    st.tuples(st.lists(_IMAGES, max_size=3), st.sampled_from(list(HealthStatus)), st.booleans()),
    max_size=4,
)
_STEPS = st.lists(st.tuples(st.integers(0, 1), st.booleans(), _WORKLOADS), max_size=6)


@pytest.mark.long
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=_STEPS,
    bound=st.one_of(st.integers(0, 1), st.sampled_from([None, "gone", "component_ids"])),
    size=st.integers(1, 3),
)
def test_any_reports(
    client_with: ClientWith, *, steps: Any, bound: int | str | None, size: int
) -> None:
    """Snapshots and deltas keep the rows right; lists and counts cover the token's clusters."""
    clusters = [Cluster.objects.create(name=uuid.uuid4().hex) for _ in range(2)]
    for seconds, (number, complete, workloads) in enumerate(steps):
        records = [
            msgspec.structs.replace(
                runs(name, *images, health_status=health), uid=f"{name}-{again}"
            )
            for name, (images, health, again) in workloads.items()
        ]
        deleted = (
            frozenset() if complete else frozenset({place("u")} - {place(r.name) for r in records})
        )
        apply(clusters[number], report(seconds, *records, complete=complete, deleted=deleted))
        rows_are_right()
    binding: dict[str, Any] = {}
    if isinstance(bound, int):
        binding = {"bound_cluster_id": clusters[bound].pk}
    elif bound is not None:
        gone = uuid.uuid4()
        binding = {"bound_cluster_id": gone} if bound == "gone" else {f"bound_{bound}": [str(gone)]}
    client = client_with("cluster:read", **binding)

    seen = [
        workload
        for workload in Workload.objects.all()
        if bound is None or (isinstance(bound, int) and workload.cluster_id == clusters[bound].pk)
    ]
    places: dict[Any, list[Workload]] = {}
    for workload in seen:
        for image in images_of(msgspec.convert(workload.containers, list[ContainerImages])):
            places.setdefault(tuple(image), []).append(workload)
    assert counted(client, page_size=size) == {
        image: (len(found), len({w.cluster_id for w in found})) for image, found in places.items()
    }
    for text, column, value in (
        ("field['image.repository'] = 'a'", 0, "docker.io/library/a"),
        (f"field['image.digest'] = '{A}'", 2, A),
    ):
        wanted = {w.pk for image, found in places.items() if image[column] == value for w in found}
        items: list[Any] = client.items(FLEET, "workloads", filter=text, page_size=size)
        assert sorted(i["id"] for i in items) == sorted(map(str, wanted))
    Cluster.objects.all().delete()
    ClusterImage.objects.all().delete()
    WorkloadImage.objects.all().delete()
