"""Bodies above 1 MiB are rejected unread on all paths except pushes, locks and reports."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from states.api.backend import StateBackendView, StateLockView
from states.api.named import (
    StateAtView,
    StateInApplicationView,
    StateLockAtView,
    StateLockInApplicationView,
)
from tests.conftest import error_reason
from tests.infra_service.test_owned_connections import paths
from workloads.api.workloads import WorkloadViewSet

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK", "UNLOCK", "TRACE")
ELSEWHERE = [
    "/", "/admin/", "/admin/login/", "/admin/apikeys/user/add/", "/static/admin/css/base.css",
    "/no/such/path", "/api/v1/states",
]  # fmt: skip
STATES = (StateBackendView, StateAtView, StateInApplicationView)
LOCKS = (StateLockView, StateLockAtView, StateLockInApplicationView)
OWN_LIMITS = {
    *itertools.product(STATES, ("POST", "LOCK", "UNLOCK")),
    *itertools.product(LOCKS, ("POST", "DELETE")),
    *itertools.product([WorkloadViewSet], ("PUT", "PATCH")),
}


class Unread:
    def read(self, *_: Any) -> bytes:
        raise AssertionError("it was read")

    readline = read


def every_door() -> list[tuple[str, str]]:
    """Return the methods and paths of the whole URL table but those with a limit of their own."""
    doors = [(method, path) for path in ELSEWHERE for method in METHODS]
    for path, view in paths(get_resolver().url_patterns):
        doors += [(m, path) for m in METHODS if (view.cls, m) not in OWN_LIMITS]
    return doors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"CONTENT_LENGTH": str(10 * 1024 * 1024)}, (413, "REQUEST_TOO_LARGE")),
        ({"CONTENT_LENGTH": str(1024 * 1024 + 1)}, (413, "REQUEST_TOO_LARGE")),
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, (411, "LENGTH_REQUIRED")),
    ],
)
def test_it_is_refused_on_every_path(headers: dict[str, str], expected: tuple[int, str]) -> None:
    """Without a database, because the length is checked first."""
    doors = every_door()
    assert len(doors) > 200
    client = Client()
    for method, path in doors:
        given = {"wsgi.input": Unread(), **headers}
        answer = client.generic(method, path, b"x", "application/json", **given)

        assert answer.status_code == expected[0], (method, path)
        if method != "HEAD":
            assert error_reason(answer) == expected[1]


def test_a_body_of_1_mib_is_let_in(db: None) -> None:
    answer = Client().generic("GET", "/healthz", b"x" * 1024 * 1024)

    assert answer.status_code == 200


def test_views_with_their_own_limit_declare_it() -> None:
    found = {
        (view.cls, method)
        for _path, view in paths(get_resolver().url_patterns)
        for method in getattr(view.cls, "reads_bodies_of", ())
    }
    assert found == OWN_LIMITS
