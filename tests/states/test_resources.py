"""GET /api/v1/states/{id}/resources."""

from typing import Any

from tests.conftest import error_reason
from tests.states.conftest import Backend, document
from tests.states.samples import AFTER, PASSWORDS, instance, path, resource, state


def test_resource_hides_secrets(backend: Backend) -> None:
    thing = resource(
        "x",
        instance(
            {"id": "1", "password": "correct-horse"},
            path("password"),
            index_key="a b",
            status="tainted",
            dependencies=["thing.y"],
            create_before_destroy=True,
            private="c2VjcmV0",
        ),
        module='module.m["k"]',
    )
    backend.push(state(thing))

    response = backend.look("/resources")

    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert response.json() == {
        "resources": [
            {
                "address": 'module.m["k"].thing.x["a b"]',
                "deposed": None,
                "module": 'module.m["k"]',
                "mode": "managed",
                "type": "thing",
                "name": "x",
                "index_key": "a b",
                "provider": 'provider["example.org/x/y"]',
                "status": "tainted",
                "schema_version": 0,
                "create_before_destroy": True,
                "dependencies": ["thing.y"],
                "sensitive_attributes": ["password"],
                "attributes": {"id": "1", "password": "(sensitive value)"},
                "hidden": None,
            }
        ],
        "version_number": 1,
        "next_page_token": "",
    }


def test_scope_discloses_secrets(backend: Backend, seeing: Backend) -> None:
    backend.push(AFTER)

    assert PASSWORDS[1] in seeing.look("/resources").content
    assert PASSWORDS[1] not in backend.look("/resources").content


def test_pages_contain_every_item_once(backend: Backend) -> None:
    backend.push(AFTER)

    found: list[Any] = []
    token = ""
    while token or not found:
        page = backend.look(f"/resources?page_size=5&page_token={token}").json()
        found += page["resources"]
        token = page["next_page_token"]

    assert found == backend.look("/resources?page_size=100").json()["resources"]
    assert len(found) == 16


def test_empty_list(backend: Backend) -> None:
    backend.push(document())

    assert backend.look("/resources").json() == {
        "resources": [],
        "version_number": 1,
        "next_page_token": "",
    }


def test_other_format_is_rejected(backend: Backend) -> None:
    backend.push(b'{"version": 5, "serial": 1}')

    response = backend.look("/resources")

    assert (response.status_code, error_reason(response)) == (400, "STATE_FORMAT_UNSUPPORTED")
    info = response.json()["error"]["details"][0]
    assert info["metadata"] == {"format_version": "5"}


def test_number_of_queries_is_constant(backend: Backend, django_assert_num_queries: Any) -> None:
    backend.push(AFTER)
    root = backend.root

    for size in (1, 100):  # token, state, document, audit event
        with django_assert_num_queries(4):
            backend.client.get(f"{root}/resources?page_size={size}")
