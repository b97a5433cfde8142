"""GET on the state backend."""

import gzip
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from psycopg import _queries

from apikeys import tokens
from apikeys.bindings import Binding
from apikeys.models import AuditEvent
from apikeys.tokens import TokenKind
from states.models import Application, State, StateVersion
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document


def test_unknown_state_returns_404(backend: Backend) -> None:
    response = backend.get()

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_a_lock_alone_is_no_state(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    assert backend.get().status_code == 404


def test_document_is_returned(backend: Backend) -> None:
    backend.push(document())

    response = backend.get()

    assert response.content == document()
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"
    assert "Accept-Encoding" in response["Vary"]
    assert "Content-Encoding" not in response


@pytest.mark.parametrize("accepted", ["gzip", "deflate, GZIP;q=0.5", "gzip; q=1"])
def test_gzip_is_handed_on(backend: Backend, accepted: str) -> None:
    backend.push(document())

    response = backend.get(headers={"Accept-Encoding": accepted})

    assert response["Content-Encoding"] == "gzip"
    assert int(response["Content-Length"]) == len(response.content)
    assert gzip.decompress(response.content) == document()


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip;q=0.0, br", "xgzip"])
def test_gzip_is_not_forced(backend: Backend, accepted: str) -> None:
    backend.push(document())

    assert backend.get(headers={"Accept-Encoding": accepted}).content == document()


def test_head_has_the_headers_only(backend: Backend) -> None:
    backend.push(document())

    response = backend.client.head(backend.path)

    assert (response.status_code, response.content) == (200, b"")
    assert int(response["Content-Length"]) == len(document())


def test_the_newest_is_read(backend: Backend) -> None:
    backend.push(document(1))
    backend.push(document(2))

    assert backend.get().content == document(2)


def test_read_is_audited(backend: Backend) -> None:
    backend.push(document())
    backend.get()

    event = AuditEvent.objects.get(action="state.read")
    assert event.resource_id == str(backend.record.pk)
    assert event.token_id == backend.client.token.pk
    assert event.details == {"version": 1}


def _tamper(change: Any) -> None:
    version = StateVersion.objects.defer(None).get()
    fields = change(version)
    StateVersion.objects.filter(pk=version.pk).update(**fields)


@pytest.mark.parametrize(
    "change",
    [
        lambda version: {"document": bytes(version.document)[:-1]},
        lambda version: {"document": bytes(version.document)[:20]},
        lambda _: {"document": b""},
        lambda version: {
            "document": bytes([bytes(version.document)[0] ^ 1, *version.document[1:]])
        },
    ],
    ids=["cut", "too short", "empty", "a bit"],
)
def test_a_damaged_document_is_never_sent(backend: Backend, change: Any) -> None:
    backend.push(document())
    _tamper(change)

    response = backend.get()

    assert (response.status_code, error_reason(response)) == (500, "DOCUMENT_DAMAGED")


def test_document_with_a_missing_key_is_reported(backend: Backend) -> None:
    backend.push(document())
    _tamper(lambda _: {"encryption_key": "0" * 16})

    response = backend.get()

    assert (response.status_code, error_reason(response)) == (500, "DOCUMENT_KEY_MISSING")


def test_a_document_that_was_moved_is_never_sent(backend: Backend) -> None:
    backend.push(document(1))
    backend.push(document(2))
    first, second = StateVersion.objects.defer(None).order_by("number")
    StateVersion.objects.filter(pk=second.pk).update(document=first.document)

    response = backend.get()

    assert (response.status_code, error_reason(response)) == (500, "DOCUMENT_DAMAGED")


def test_documents_are_not_readable_at_rest(backend: Backend) -> None:
    backend.push(document(outputs={"password": {"value": "hunter2" * 50}}))

    payload = bytes(StateVersion.objects.defer(None).get().document)

    assert b"hunter2" not in payload
    assert not payload.startswith(b"\x1f\x8b")


def test_needs_the_scope(backend: Backend, client_with: ClientWith) -> None:
    response = backend.as_client(client_with("state:write")).get()

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_state_outside_the_binding_returns_404(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())
    elsewhere = client_with("state:read", bound_environment_ids=[str(uuid.uuid4())])

    response = backend.as_client(elsewhere).get()

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_other_method_is_rejected(backend: Backend) -> None:
    response = backend.send("PATCH")

    assert (response.status_code, error_reason(response)) == (405, "METHOD_NOT_ALLOWED")
    assert response["Allow"] == "GET, HEAD, POST, DELETE, LOCK, UNLOCK"


def test_other_media_type_is_rejected(backend: Backend) -> None:
    response = backend.get(headers={"Accept": "text/html"})

    assert (response.status_code, error_reason(response)) == (406, "NOT_ACCEPTABLE")


@pytest.mark.parametrize("accept", ["*/*", "application/*", "text/html, */*;q=0.1"])
def test_media_types_that_include_json_are_accepted(backend: Backend, accept: str) -> None:
    response = backend.get(headers={"Accept": accept})

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")
    assert response["Content-Type"] == "application/json"


def test_number_of_queries_is_constant(backend: Backend, django_assert_num_queries: Any) -> None:
    backend.push(document())

    # Token, document, audit event.
    with django_assert_num_queries(2):
        backend.get()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about psycopg")
def test_psycopg_caches_converted_statements(backend: Backend) -> None:
    backend.push(document())
    backend.get()
    before = _queries._query2pg.cache_info()

    backend.get()

    after = _queries._query2pg.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 0)


def test_number_of_queries_is_constant_for_an_application_binding(
    backend: Backend, client_with: ClientWith, django_assert_num_queries: Any
) -> None:
    backend.push(document())
    application = Application.objects.create(name="shop")
    State.objects.update(application_id=application.pk)
    binding = Binding(application_ids=frozenset({application.pk}))
    bound = backend.as_client(client_with("state:read", **binding.columns()))

    assert bound.get().content == document()  # records the token's first use

    # The state's application is part of the prefetched row.
    with django_assert_num_queries(2):
        bound.get()


def test_unknown_token_is_rejected(backend: Backend, anonymous: Client) -> None:
    backend.push(document())
    unknown = {"Authorization": f"Bearer {tokens.generate(TokenKind.PERSONAL)}"}

    for path in (backend.path, f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"):
        response = anonymous.get(path, headers=unknown)
        assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
