"""The common error format for errors raised outside our views."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest
from django.test import Client, RequestFactory
from rest_framework import exceptions
from rest_framework.response import Response

from infra_service.lib.api import handlers
from infra_service.lib.api.errors import exception_handler
from tests.conftest import ClientWith, error_reason
from workloads.errors import ClusterNotFound


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def request_() -> HttpRequest:
    request = RequestFactory().get("/")
    request.request_id = "r1"  # type: ignore[attr-defined]
    return request


def answer(request: HttpRequest, exception: Exception) -> Response:
    response = exception_handler(exception, {"request": SimpleNamespace(_request=request)})
    assert response is not None
    return response


PATHS = ["/", "/healthz", "/readyz", "/api/schema", "/api/docs"]
OF_TOKENS = ["/v1/whoami", "/api/v1/states", "/api/v1/audit-events", "/api/v1/clusters/x/workloads"]


@pytest.mark.parametrize("path", PATHS + OF_TOKENS)
def test_no_path_takes_options(client_with: ClientWith, path: str) -> None:
    client = client_with("audit:read", "cluster:read")

    response = client.options(path)

    assert (response.status_code, error_reason(response)) == (405, "METHOD_NOT_ALLOWED")
    assert "OPTIONS" not in response["Allow"]


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/nothing",
        "/api/v1/nothing/",
        "/v1",
        "/v1/",
        "/api",
        "/api/v1",
        "/v1/admin/x",
        "/%00",
        "/api/v1//",
    ],
)
def test_unknown_path_is_not_found(client: Client, path: str) -> None:
    response = client.post(path)

    assert (response.status_code, error_reason(response)) == (404, "NOT_FOUND")
    assert response.json() == {
        "error": {
            "code": 404,
            "status": "NOT_FOUND",
            "message": "There is no resource at this path. /api/docs/ lists the available paths.",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "NOT_FOUND",
                    "domain": "infra-service",
                    "metadata": {},
                },
                {
                    "@type": "type.googleapis.com/google.rpc.RequestInfo",
                    "request_id": response["X-Request-ID"],
                },
            ],
        }
    }


def test_wrong_host_is_rejected(client: Client) -> None:
    response = client.get("/api/v1/nothing", headers={"Host": "evil.example"})

    assert (response.status_code, error_reason(response)) == (400, "BAD_REQUEST")
    assert "ALLOWED_HOSTS" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("requested_path", "meant"),
    [
        ("/api/v1/whoami", "/v1/whoami"),
        ("/api/v1/api-keys/key-1:rotate", "/v1/api-keys/key-1:rotate"),
        ("/v1/states", "/api/v1/states"),
        ("/v1/state/a%20b/env/%C3%A9/lock/?secret=1", "/api/v1/state/a%20b/env/%C3%A9/lock/"),
        ("/states/1/versions", "/api/v1/states/1/versions"),
        ("/api/v2/clusters", "/api/v1/clusters"),
        ("/docs", "/api/docs"),
        ("/api/healthz", "/healthz"),
        ("/api/v1/states/1:forceUnlock", "/api/v1/states/1:force-unlock"),
        ("/api/v1/states/1:force_unlock", "/api/v1/states/1:force-unlock"),
        ("/api/v1/states/1/undelete", "/api/v1/states/1:undelete"),
        ("/api/v1/states/1/versions/2:restor", "/api/v1/states/1/versions/2:restore"),
        ("/api/v1/api-keys/key-1/rotate", "/v1/api-keys/key-1:rotate"),
        ("/api/v1/states/1:unlock", "/api/v1/states/1:force-unlock"),
        ("/api/v1/states/1/versions/2:rollback", "/api/v1/states/1/versions/2:restore"),
        ("/api/v1/stats", "/api/v1/states"),
        ("/api/v1/enviroments", "/api/v1/environments"),
        ("/api/v1/component/1", "/api/v1/components/1"),
        ("/api/v1/state/1/versions", "/api/v1/states/1/versions"),
        ("/api/v1/states/at/shop/network", "/api/v1/state/at/shop/network"),
        ("/api/v1/apikeys", "/v1/api-keys"),
        ("/v1/accessTokens", "/v1/access-tokens"),
        ("/api/v1/states/1/ressources", "/api/v1/states/1/resources"),
    ],
)
def test_path_with_another_prefix_is_not_found(
    client: Client, requested_path: str, meant: str
) -> None:
    response = client.post(requested_path)

    assert (response.status_code, error_reason(response)) == (404, "NOT_FOUND")
    error = response.json()["error"]
    assert error["message"] == f"There is no resource at this path. Use {meant} instead."
    assert error["details"][0]["metadata"] == {"suggestion": meant}


@pytest.mark.parametrize(
    "requested_path",
    [
        "/api/v1/states/1:explode",
        # The opposite of a word is not a misspelling of it.
        "/api/v1/states/1:delete",
        "/" + "a:" * 900,
        "/" + "states/" * 900,
        "/:",
        "/x/undelete",
    ],
)
def test_unknown_path_without_a_similar_path_has_no_suggestion(
    client: Client, requested_path: str
) -> None:
    error = client.post(requested_path).json()["error"]

    assert error["message"].endswith("/api/docs/ lists the available paths.")


def test_internal_error_has_the_error_form(
    client: Client, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    from infra_service.operations.health import HealthView  # noqa: PLC0415 - beside its use

    def fail(*_: Any) -> None:
        raise RuntimeError("isp_" + "A" * 38)

    monkeypatch.setattr(HealthView, "get", fail)

    response = client.get("/healthz")

    assert (response.status_code, error_reason(response)) == (500, "INTERNAL")
    assert "AAAA" not in response.content.decode()


@pytest.mark.parametrize(
    ("exception", "status", "rpc_status", "reason"),
    [
        (Http404(), 404, "NOT_FOUND", "NOT_FOUND"),
        (PermissionDenied(), 403, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        (RequestDataTooBig(), 413, "INVALID_ARGUMENT", "REQUEST_TOO_LARGE"),
        (exceptions.ParseError(), 400, "INVALID_ARGUMENT", "INVALID_JSON"),
        (exceptions.UnsupportedMediaType("text/plain"), 415, "INVALID_ARGUMENT",
         "UNSUPPORTED_MEDIA_TYPE"),
        (exceptions.Throttled(wait=1.2), 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED"),
    ],
)  # fmt: skip
def test_known_exceptions_have_the_error_form(
    request_: HttpRequest, exception: Exception, status: int, rpc_status: str, reason: str
) -> None:
    response = answer(request_, exception)

    error = response.data["error"]
    assert (response.status_code, error["status"]) == (status, rpc_status)
    assert error["details"][0]["reason"] == reason
    assert error["message"]


def test_messages_state_a_remedy(request_: HttpRequest) -> None:
    unsupported = answer(request_, exceptions.UnsupportedMediaType("text/plain"))
    not_there = answer(request_, ClusterNotFound())

    assert unsupported.data["error"]["message"].endswith("'Content-Type: application/json'.")
    assert not_there.data["error"]["message"] == (
        "The cluster does not exist. GET /api/v1/clusters lists the clusters that your token can "
        "access, with their ids."
    )


def test_waiting_times_are_whole_seconds(request_: HttpRequest) -> None:
    assert answer(request_, exceptions.Throttled(wait=1.2)).headers["Retry-After"] == "2"
    assert answer(request_, exceptions.Throttled(wait=0)).headers["Retry-After"] == "1"


def test_every_fault_of_a_body_is_named(request_: HttpRequest) -> None:
    exception = exceptions.ValidationError(
        {
            "name": [exceptions.ErrorDetail("This field is required.", "required")],
            "scopes": {1: [exceptions.ErrorDetail("Unknown scope.", "unknown_scope")]},
            "non_field_errors": [exceptions.ErrorDetail("Not like this.", "invalid")],
        }
    )

    error = answer(request_, exception).data["error"]

    assert error["details"][0]["reason"] == "INVALID_FIELDS"
    assert error["details"][1]["field_violations"] == [
        {"field": "name", "description": "This field is required.", "reason": "REQUIRED"},
        {"field": "scopes.1", "description": "Unknown scope.", "reason": "UNKNOWN_SCOPE"},
        {"field": "body", "description": "Not like this.", "reason": "INVALID"},
    ]
    assert error["message"] == (
        "name: This field is required. scopes.1: Unknown scope. body: Not like this."
    )


def test_other_exceptions_are_djangos(request_: HttpRequest) -> None:
    context = {"request": SimpleNamespace(_request=request_)}

    assert exception_handler(RuntimeError(), context) is None


@pytest.mark.parametrize(
    ("exception", "status", "reason"),
    [(Exception(), 400, "BAD_REQUEST"), (RequestDataTooBig(), 413, "REQUEST_TOO_LARGE")],
)
def test_errors_before_any_view_have_the_error_form(
    request_: HttpRequest, exception: Exception, status: int, reason: str
) -> None:
    response = handlers.bad_request(request_, exception)

    assert response.status_code == status
    assert f'"reason": "{reason}"' in response.content.decode()


def test_forbidden_page_outside_the_api_is_html(request_: HttpRequest) -> None:
    response = handlers.permission_denied(request_, PermissionDenied())

    assert response.status_code == 403
    assert '"reason": "PERMISSION_DENIED"' in response.content.decode()
