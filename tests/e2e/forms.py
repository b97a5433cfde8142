"""The format of every error (design §7), compared exactly."""

from __future__ import annotations

from tests.support.server import Answer

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    406: "INVALID_ARGUMENT",
    413: "INVALID_ARGUMENT",
    414: "INVALID_ARGUMENT",
    417: "INVALID_ARGUMENT",
    431: "INVALID_ARGUMENT",
    501: "UNIMPLEMENTED",
}
_TYPE = "type.googleapis.com/google.rpc."


def assert_error(answer: Answer, status: int, reason: str) -> str:
    """Check every part of the error; return its message."""
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"code", "status", "message", "details"}
    assert (error["code"], error["status"]) == (status, _STATUS[status])
    info, *violations, request = error["details"]
    assert (info["@type"], info["domain"]) == (_TYPE + "ErrorInfo", "infra-service")
    assert set(info) == {"@type", "reason", "domain", "metadata"}
    for entry in violations:
        assert entry["@type"] == _TYPE + "BadRequest"
        for violation in entry["field_violations"]:
            assert set(violation) == {"field", "description", "reason"}
    request_id = answer.headers["X-Request-ID"]
    assert request == {"@type": _TYPE + "RequestInfo", "request_id": request_id}
    message: str = error["message"]
    assert message
    return message
