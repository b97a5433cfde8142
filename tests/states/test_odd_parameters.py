"""Ids and parameters in forms that Python takes and the API does not; and names of routes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from apikeys.models import User
from states.models import State
from tests.conftest import error_reason
from tests.states.conftest import Backend, document
from workloads.models import Cluster

pytestmark = pytest.mark.both

FORMS: list[Callable[[uuid.UUID], str]] = [
    lambda i: i.hex,
    lambda i: f"{{{i}}}",
    lambda i: i.urn,
    lambda i: f"urn:uuid:{i.hex}",
    lambda i: f"{i.hex[:4]}-{i.hex[4:]}",
]


@pytest.mark.parametrize("form", FORMS)
def test_ids_have_a_single_form(backend: Backend, client_with: Any, form: Any) -> None:
    assert backend.push(document(1)).status_code == 200
    client = client_with("state:read", "state:admin", "cluster:read", "cluster:write")
    cluster = Cluster.objects.create(name="c")
    odd, state = form(backend.record.pk), backend.record
    for path in (
        f"/api/v1/states/{odd}",
        f"/api/v1/states/{odd}/versions",
        f"/api/v1/states/{odd}/versions/1/diff",
        f"/api/v1/states/{odd}/outputs",
        f"/api/v1/components/{form(state.component_id)}",
        f"/api/v1/clusters/{form(cluster.pk)}",
        f"/api/v1/clusters/{form(cluster.pk)}/workloads",
    ):
        assert client.get(path).status_code == 404, path
    path = f"/api/v1/state/{form(state.component_id)}/env/{state.environment_id}"
    assert error_reason(client.get(path)) in {"INVALID_FIELDS", "NOT_FOUND"}


def test_the_case_of_an_id_does_not_count(backend: Backend) -> None:
    assert backend.push(document(1)).status_code == 200
    upper = str(backend.record.pk).upper()

    assert backend.client.get(f"/api/v1/states/{upper}/versions").status_code == 200
    assert backend.client.get(f"/api/v1/states/{upper}").status_code == 200


def _patterns(entries: list[URLPattern | URLResolver]) -> list[URLPattern]:
    found = []
    for entry in entries:
        if isinstance(entry, URLPattern):
            found.append(entry)
        elif entry.namespace != "admin":
            found += _patterns(entry.url_patterns)
    return found


def test_each_route_has_a_name_of_its_own() -> None:
    """Metrics identify operations by the name of the route."""
    patterns = _patterns(get_resolver().url_patterns)

    assert not [p for p in patterns if not p.name]
    names = [p.name for p in patterns]
    assert len(names) == len(set(names))


ODD = ["\0", "%00", "\ud800", "[" * 5000, "9" * 5000, "1e999999999", "-1", "٣", "{}", "'"]


@pytest.mark.long
@pytest.mark.parametrize("value", ODD)
def test_odd_parameters_are_handled(locked_state: State, value: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root", password="x"))
    root = f"/admin/states/state/{locked_state.pk}"
    quoted = "".join(f"%{byte:02X}" for byte in value.encode("utf-8", "surrogatepass"))
    for path in (
        f"{root}/compare/?before={quoted}&after=2",
        f"{root}/compare/?before=1&after=2&start={quoted}",
        f"{root}/change/?versions_before={quoted}",
        f"{root}/restore/?number={quoted}",
        f"{root}/force-unlock/?lock_id={quoted}",
        f"/admin/states/state/?q={quoted}",
        f"/admin/states/state/?locked={quoted}",
        f"/admin/states/state/?environment={quoted}&application={quoted}&component={quoted}",
        f"/admin/states/state/?o={quoted}&p={quoted}&after={quoted}&page_token={quoted}",
        f"/admin/states/component/?q={quoted}",
        f"/admin/states/state/{quoted}/change/",
        f"/admin/states/state/{quoted}/compare/",
    ):
        assert client.get(path).status_code < 500, path
    for name in ("force-unlock", "restore", "delete", "undelete"):
        sent = value.encode(errors="replace").decode()
        body = dict.fromkeys(("reason", "number", "displayed", "holder"), sent)
        assert client.post(f"{root}/{name}/", body).status_code < 500, name
