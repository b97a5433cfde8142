"""States that manage a workload: a join of reports with the index of resources."""

from __future__ import annotations

import io
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from apikeys.bindings import Binding
from infra_service.managed_workloads import StatesManage
from states.models import Application, Component, Environment, State
from tests.apiserver import DEPLOYMENTS, STATEFULSETS, ReplayServer
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from tests.states.test_cluster_objects import deployment, release
from tests.support.people import person, text_of
from tests.workloads.records import apply, record, report, stored
from workloads import summaries
from workloads.models import Cluster, Workload

UID = "7f1d5bb2-8f43-4e0b-9d6c-0a4f2f5a6c11"
INSTANCE = "app.kubernetes.io/instance"
OF_RELEASE = {INSTANCE: "ingress", "app.kubernetes.io/managed-by": "Helm"}


@pytest.fixture
def reader(client_with: ClientWith) -> ApiClient:
    return client_with("cluster:read", "state:read", "state:write", "state:admin")


@pytest.fixture
def backend(reader: ApiClient) -> Backend:
    return Backend(reader)


def manages(backend: Backend, uid: str, serial: int = 1, name: str = "web") -> None:
    """Push a state with a Deployment of this uid."""
    thing = resource(name, instance(deployment(uid)), type="kubernetes_deployment_v1")
    assert backend.push(state(thing, serial=serial)).status_code == 200
    index()


def releases(backend: Backend, **given: Any) -> None:
    backend.push(state(resource("ingress", instance(release(**given)), type="helm_release")))
    index()


def one(client: ApiClient, cluster: Cluster, name: str = "web", namespace: str = "shop") -> Any:
    row = Workload.objects.get(cluster=cluster, name=name, namespace=namespace)
    answer = client.get(f"/api/v1/clusters/{cluster.pk}/workloads/{row.pk}")
    assert answer.status_code == 200
    return answer.json()["workload"]


def names(client: ApiClient, cluster: Cluster, text: str) -> list[str]:
    found = client.items(f"/api/v1/clusters/{cluster.pk}/workloads", "workloads", filter=text)
    return sorted(workload["name"] for workload in found)


def counts(client: ApiClient, cluster: Cluster, text: str = "") -> tuple[int, int]:
    answer = client.get(f"/api/v1/clusters/{cluster.pk}/workloads:summary", {"filter": text})
    total = answer.json()["summary"]["total"]
    groups = answer.json()["summary"]["groups"]
    for name in ("workloads_managed", "workloads_unmanaged"):
        assert total[name] == sum(group[name] for group in groups)
    return total["workloads_managed"], total["workloads_unmanaged"]


def test_workload_is_matched_by_its_uid(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record(uid=UID), record("other")))
    assert (one(reader, cluster)["managed"], one(reader, cluster)["managed_by"]) == (False, [])
    manages(backend, UID)

    shown = one(reader, cluster)

    assert shown["managed"] is True
    assert shown["managed_by"] == [
        {
            "state_id": str(backend.record.pk),
            "component_id": str(backend.component_id),
            "environment_id": str(backend.environment_id),
            "address": "kubernetes_deployment_v1.web",
            "joined_by": "METADATA_UID",
        }
    ]
    assert one(reader, cluster, "other")["managed"] is False
    assert names(reader, cluster, "field['managed'] = 'true'") == ["web"]
    assert names(reader, cluster, "field['managed'] = 'false'") == ["other"]
    assert names(reader, cluster, "NOT field['managed'] = 'true' AND field['name'] = 'web'") == []
    assert counts(reader, cluster) == (1, 1)
    assert counts(reader, cluster, "field['managed'] = 'false'") == (0, 1)


def test_it_does_not_matter_which_comes_first(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    manages(backend, UID)
    apply(cluster, report(0, record(uid=UID)))

    assert one(reader, cluster)["managed"] is True


def test_an_object_that_is_made_again_is_another(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    manages(backend, UID)
    apply(cluster, report(0, record(uid=UID)))
    apply(cluster, report(60, record(uid="made-by-hand")))

    assert (one(reader, cluster)["managed"], one(reader, cluster)["managed_by"]) == (False, [])
    # Until Terraform detects the change and stores the new UID in the state.
    manages(backend, "made-by-hand", serial=2)
    assert one(reader, cluster)["managed"] is True


def test_released_workload_is_unmanaged(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record(uid=UID)))
    manages(backend, UID)
    backend.push(state(serial=2))
    index()
    assert one(reader, cluster)["managed"] is False

    manages(backend, UID, serial=3)
    assert backend.delete().status_code == 200
    assert one(reader, cluster)["managed"] is False
    backend.call(":undelete")
    index()
    assert one(reader, cluster)["managed"] is True


def test_join_by_helm_release_is_labelled(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    releases(backend)
    apply(cluster, report(
        0,
        record("controller", namespace="edge", labels=OF_RELEASE),
        record("elsewhere", namespace="shop", labels=OF_RELEASE),
        record("another", namespace="edge", labels={INSTANCE: "ingress-2"}),
        record("bare", namespace="edge", labels={}, uid=""),
    ))  # fmt: skip

    (by,) = one(reader, cluster, "controller", "edge")["managed_by"]
    assert (by["address"], by["joined_by"]) == ("helm_release.ingress", "HELM_RELEASE")
    assert names(reader, cluster, "field['managed'] = 'true'") == ["controller"]
    assert counts(reader, cluster) == (1, 3)
    # A match by UID comes first.
    other = Backend(reader)
    manages(other, "uid-controller", name="controller")
    joined = [by["joined_by"] for by in one(reader, cluster, "controller", "edge")["managed_by"]]
    assert joined == ["METADATA_UID", "HELM_RELEASE"]


def test_a_release_joins_and_leaves_with_the_label(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    releases(backend)
    for seconds, labels in enumerate((OF_RELEASE, {}, OF_RELEASE)):
        apply(cluster, report(seconds, record(namespace="edge", labels=labels)))
        assert one(reader, cluster, namespace="edge")["managed"] is (labels is OF_RELEASE)


def test_several_states_may_manage_the_same_object(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record(uid=UID)))
    other = Backend(reader)
    manages(backend, UID, name="first")
    manages(other, UID, name="second")

    managing = {(by["state_id"], by["address"]) for by in one(reader, cluster)["managed_by"]}
    assert managing == {
        (str(backend.record.pk), "kubernetes_deployment_v1.first"),
        (str(other.record.pk), "kubernetes_deployment_v1.second"),
    }
    assert counts(reader, cluster) == (1, 0)


def test_managing_state_is_visible_only_with_access_to_it(
    backend: Backend, client_with: ClientWith, cluster: Cluster
) -> None:
    """Readers of a workload see that it is managed; the state is visible only with access to it."""
    apply(cluster, report(0, record(uid=UID), record("other")))
    manages(backend, UID)

    for client, sees in (
        (client_with("cluster:read", "state:read"), 1),
        (client_with("cluster:read"), 0),
        (client_with("cluster:read", "state:read", bound_cluster_id=cluster.pk), 0),
    ):
        shown = one(client, cluster)
        assert (shown["managed"], len(shown["managed_by"])) == (True, sees)
        assert names(client, cluster, "field['managed'] = 'false'") == ["other"]
        assert counts(client, cluster) == (1, 1)


def test_filter_accepts_only_true_and_false(reader: ApiClient, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.pk}/workloads"
    for text in ("field['managed'] = 'perhaps'", "field['managed'] ~= 'true'"):
        answer = reader.get(path, {"filter": text})
        assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FILTER"), text


def test_all_clusters_are_counted(backend: Backend, reader: ApiClient, cluster: Cluster) -> None:
    """The list, and the sums."""
    other = Cluster.objects.create(name="other")
    apply(cluster, report(0, record(uid=UID)))
    apply(other, report(0, record("left")))
    manages(backend, UID)

    for answer, name in (("true", "web"), ("false", "left")):
        text = f"field['managed'] = '{answer}'"
        found = reader.items("/api/v1/workloads", "workloads", filter=text)
        assert [workload["name"] for workload in found] == [name]
        total = reader.get("/api/v1/workloads:summary", {"filter": text}).json()["summary"]["total"]
        assert total["workloads"] == 1
        counted = (total["workloads_managed"], total["workloads_unmanaged"])
        assert counted == ((1, 0) if answer == "true" else (0, 1))


def test_counts_are_omitted_above_the_limit(
    backend: Backend, reader: ApiClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(cluster, report(0, record(uid=UID), record("left"), record("other", namespace="bank")))
    manages(backend, UID)

    def counted() -> list[tuple[int | None, int | None]]:
        summary = reader.get("/api/v1/workloads:summary").json()["summary"]
        return [
            (each["workloads_managed"], each["workloads_unmanaged"])
            for each in (summary["total"], *summary["groups"])
        ]

    monkeypatch.setattr(summaries, "MOST_JOINED", 3)
    assert counted() == [(1, 2), (1, 2)]
    monkeypatch.setattr(summaries, "MOST_JOINED", 2)
    assert counted() == [(None, None), (None, None)]


def test_pages_contain_every_unmanaged_workload(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    things = [
        resource(f"w{n}", instance(deployment(f"uid-w{n}")), type="kubernetes_deployment_v1")
        for n in range(0, 20, 2)
    ]
    backend.push(state(*things))
    index()
    apply(cluster, report(0, *(record(f"w{n}") for n in range(20))))

    found, token = [], ""
    while token or not found:
        query = {"filter": "field['managed'] = 'false'", "page_size": "3", "page_token": token}
        answer = reader.get(f"/api/v1/clusters/{cluster.pk}/workloads", query).json()
        found += [workload["name"] for workload in answer["workloads"]]
        token = answer["next_page_token"]
    assert sorted(found) == sorted(f"w{n}" for n in range(1, 20, 2))


def test_number_of_statements_is_constant(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    """One more statement for a workload, and no more for the list and the summary."""
    apply(cluster, report(0, record(uid=UID)))
    manages(backend, UID)
    root = f"/api/v1/clusters/{cluster.pk}/workloads"
    row = Workload.objects.get()
    for path, number in {f"{root}/{row.pk}": 2, root: 1, f"{root}:summary": 1}.items():
        with CaptureQueriesContext(connection) as captured:
            assert reader.get(path).status_code == 200
        queries = [q["sql"] for q in captured if '"workloads_workload"' in q["sql"]
                 or 'FROM "states_resourceentry"' in q["sql"]]  # fmt: skip
        assert len(queries) == number, path


def test_reports_and_pushes_do_not_query_the_index(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    manages(backend, UID)
    with CaptureQueriesContext(connection) as captured:
        apply(cluster, report(0, record(uid=UID)))
        backend.push(state(serial=2))
    assert [q["sql"] for q in captured if "cluster_object" in q["sql"]] == []


def test_recorded_cluster_is_matched(
    backend: Backend, reader: ApiClient, cluster: Cluster, tmp_path: Path
) -> None:
    """States of the recorded workloads of a real cluster, except its DaemonSets."""
    with ReplayServer() as api:
        for kind, path in {
            "deployment_v1": DEPLOYMENTS,
            "stateful_set": STATEFULSETS,
        }.items():
            things = [
                resource(f"x{n}", instance({"metadata": [in_terraform(found["metadata"])]}),
                         type=f"kubernetes_{kind}")
                for n, found in enumerate(api.lists[path])
            ]  # fmt: skip
            assert Backend(reader).push(state(*things)).status_code == 200
        index()
        given = ("--cluster", cluster.name, "--kubeconfig", str(api.kubeconfig(tmp_path)))
        call_command("sync_workloads", *given, stdout=io.StringIO(), stderr=io.StringIO())

    kinds = Counter(place.kind for place in stored(cluster))
    managed = kinds["Deployment"] + kinds["StatefulSet"]
    assert managed > 20 < managed + kinds["DaemonSet"]
    assert counts(reader, cluster) == (managed, kinds["DaemonSet"])
    root = f"/api/v1/clusters/{cluster.pk}/workloads"
    left = reader.items(root, "workloads", filter="field['managed'] = 'false'")
    assert {workload["kind"] for workload in left} == {"DaemonSet"}


def in_terraform(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return an object's metadata as hashicorp/kubernetes has it in a state."""
    plain = {name: metadata.get(name) for name in ("name", "namespace", "uid", "generation")}
    return {
        **plain,
        "annotations": metadata.get("annotations", {}),
        "labels": metadata.get("labels", {}),
        "generate_name": "",
        "resource_version": metadata.get("resourceVersion"),
    }


def test_bound_token_sees_managing_states_inside_its_binding(
    backend: Backend, reader: ApiClient, cluster: Cluster
) -> None:
    """The managed flag does not depend on the binding."""
    apply(cluster, report(0, record(uid=UID)))
    workload = Workload.objects.get()
    backends = [Backend(reader) for _ in range(6)]
    for number, each in enumerate(backends):
        each.environment_id = backends[number % 3].environment_id
        manages(each, UID, name=f"web{number}")
    shops = [Application.objects.create(name=name, slug=name) for name in ("a", "b")]
    for number, each in enumerate(backends[:4]):
        Component.objects.filter(pk=each.component_id).update(application=shops[number % 2])
    states = list(State.objects.select_related("component"))
    assert len(states) == 6

    def some(ids: Any) -> Any:
        return st.none() | st.frozensets(st.sampled_from(sorted({*ids, uuid.UUID(int=1)})))

    bound = st.builds(
        Binding,
        component_ids=some(s.component_id for s in states),
        environment_ids=some(s.environment_id for s in states),
        application_ids=some(shop.pk for shop in shops),
    ) | st.just(Binding(cluster_id=cluster.pk))

    @settings(max_examples=60, deadline=None)
    @given(bound)
    def holds(binding: Binding) -> None:
        inside = {
            s.pk
            for s in states
            if binding.allows_state(s.component_id, s.environment_id, s.component.application_id)
        }
        found = StatesManage().managed_by(workload, binding)
        assert {one.state_id for one in found} == inside
        assert len(found) == len(inside)

    holds()
    assert Workload.objects.filter(StatesManage().is_managed()).exists()


def test_admin_page_shows_the_managing_state(backend: Backend, cluster: Cluster) -> None:
    apply(cluster, report(0, record(uid=UID), record("other")))
    manages(backend, UID)
    Component.objects.update(name="shop-web")
    rows = stored(cluster)
    pages = {place.name: f"/admin/workloads/workload/{row.pk}/change/"
             for place, row in rows.items()}  # fmt: skip

    viewer = person("viewer")
    overview = text_of(viewer.get(f"/admin/workloads/cluster/{cluster.pk}/change/"))
    assert "Workloads States manage 1 of 2 workloads." in overview
    text = text_of(viewer.get(pages["web"]))
    environment = Environment.objects.get().pk
    row = f"shop-web in {environment} kubernetes_deployment_v1.web uid"
    assert f"Managed by State Address Matched by {row}" in text
    assert "No state in the resource index manages this workload." in text_of(
        person("viewer").get(pages["other"])
    )
