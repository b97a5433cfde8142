"""GET /api/v1/states/{id}/versions/{number}/document."""

import gzip

from apikeys.models import AuditEvent
from states.models import StateVersion
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document

ODD = b'\r\n {"serial":1,"n":0.1234567890123456789012345,"\xc3\xa9":1} \n'


def test_exact_bytes_of_any_version_are_returned(seeing: Backend, backend: Backend) -> None:
    backend.push(ODD)
    backend.push(document(2))

    response = seeing.look("/versions/1/document")

    assert (response.status_code, response.content) == (200, ODD)
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"


def test_gzip_is_handed_on(seeing: Backend, backend: Backend) -> None:
    backend.push(ODD)

    response = seeing.look("/versions/1/document", headers={"Accept-Encoding": "gzip"})

    assert response["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.content) == ODD


def test_read_is_audited(seeing: Backend, backend: Backend) -> None:
    backend.push(document())

    seeing.look("/versions/1/document")

    event = AuditEvent.objects.get(action="state.read")
    assert event.details == {"version": 1}
    assert event.token_id == seeing.client.token.pk


def test_document_requires_the_secrets_scope(backend: Backend) -> None:
    backend.push(document())

    response = backend.look("/versions/1/document")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert 'scope="state:secrets"' in response["WWW-Authenticate"]


def test_scope_is_checked_before_the_version(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())

    response = backend.look("/versions/9/document")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_damaged_document_is_never_sent(seeing: Backend, backend: Backend) -> None:
    backend.push(document())
    StateVersion.objects.update(document=b"\0" * 40)

    response = seeing.look("/versions/1/document")

    assert (response.status_code, error_reason(response)) == (500, "DOCUMENT_DAMAGED")
