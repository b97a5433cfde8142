"""GET /api/v1/states/{id}/versions and …/versions/{number}."""

import hashlib
from typing import Any

import pytest

from states.models import StateVersion
from tests.conftest import error_reason
from tests.states.conftest import LINEAGE, Backend, document, seen


def described(backend: Backend, number: int) -> dict[str, Any]:
    version = StateVersion.objects.get(number=number, state=backend.record)
    body = document(number)
    return {
        "number": number,
        "serial": number,
        "lineage": LINEAGE,
        "md5": hashlib.md5(body).hexdigest(),
        "size_bytes": len(body),
        "created_at": seen(version.created_at),
        "created_by": "operator",
        "token_id": backend.client.token.pk,
    }


def test_newest_items_are_listed_first(backend: Backend) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))

    response = backend.look("/versions")

    assert response.status_code == 200
    assert response.json() == {
        "versions": [described(backend, number) for number in (3, 2, 1)],
        "next_page_token": "",
    }


def test_pages_contain_every_item_once(backend: Backend) -> None:
    for serial in range(1, 6):
        backend.push(document(serial))

    first = backend.look("/versions?page_size=2").json()
    backend.push(document(6))
    second = backend.look(f"/versions?page_size=3&page_token={first['next_page_token']}").json()

    assert [v["number"] for v in first["versions"]] == [5, 4]
    assert [v["number"] for v in second["versions"]] == [3, 2, 1]
    assert second["next_page_token"] == ""


def test_before_the_first_push(backend: Backend, lock_id: Any) -> None:
    backend.lock(lock_id)

    assert backend.look("/versions").json() == {"versions": [], "next_page_token": ""}


def test_page_token_of_another_state_is_rejected(backend: Backend) -> None:
    other = Backend(backend.client)
    for one in (backend, other):
        one.push(document(1))
        one.push(document(2))
    token = backend.look("/versions?page_size=1").json()["next_page_token"]

    response = other.look(f"/versions?page_token={token}")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_PAGE_TOKEN")


def test_unknown_parameters_are_rejected(backend: Backend) -> None:
    backend.push(document())

    response = backend.look("/versions?against=1")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")


def test_number_of_queries_is_constant(backend: Backend, django_assert_num_queries: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    backend.look("/versions")
    root = backend.root

    for count in (1, 3):  # token, state, versions
        with django_assert_num_queries(3):
            backend.client.get(f"{root}/versions?page_size={count}")


def test_single_version_is_returned(backend: Backend) -> None:
    backend.push(document(1))
    backend.push(document(2))

    response = backend.look("/versions/1")

    assert (response.status_code, response.json()) == (200, {"version": described(backend, 1)})


@pytest.mark.both
@pytest.mark.parametrize("number", ["2", "0", "-1", "x", "1.0", "99999999999999999999", "\u0661"])
@pytest.mark.parametrize("suffix", ["", "/document", "/diff"])
def test_unknown_version_is_not_found(
    seeing: Backend, backend: Backend, number: str, suffix: str
) -> None:
    backend.push(document())

    response = seeing.look(f"/versions/{number}{suffix}")

    assert (response.status_code, error_reason(response)) == (404, "VERSION_NOT_FOUND")
