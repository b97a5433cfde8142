"""The errors of an operation, derived from the declarations of its view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rest_framework import exceptions

from apikeys.errors import (
    AddressNotAllowed,
    CallerChanged,
    CredentialsInvalid,
    CredentialsMissing,
    ScopeInsufficient,
    TokenExpired,
    TokenKindUnsupported,
)
from filterlang.backend import InvalidFilter
from infra_service.lib.api import idempotency
from infra_service.lib.api.bodies import BodyTooLarge, LengthRequired, RequestTimeout
from infra_service.lib.api.errors import reason_of
from infra_service.lib.api.idempotency import is_idempotent
from infra_service.lib.api.pagination import InvalidPageToken
from infra_service.lib.database.failures import FAILURES

if TYPE_CHECKING:
    from collections.abc import Iterator


class ErrorDoc(NamedTuple):
    """The status, reason and meaning of an error."""

    status: int
    reason: str
    meaning: str


# Errors of Django's handlers, which raise no exception, and the meanings of DRF's exceptions.
_HANDLERS: Final = (
    ErrorDoc(400, "BAD_REQUEST", "The request is malformed, for example its Host header."),
    ErrorDoc(400, "HTTPS_REQUIRED", "The service rejects plain HTTP instead of redirecting."),
    ErrorDoc(
        500, "INTERNAL", "The service failed. The log contains the details under the request id."
    ),
)
_MEANINGS: Final = {
    "INVALID_FIELDS": "Fields or parameters are invalid. `field_violations` lists each of them "
    "with the reason.",
    "INVALID_JSON": "The body is not JSON in UTF-8, is nested too deeply, or contains a NUL "
    "character or a duplicate member.",
    "NOT_FOUND": "There is no resource at this path.",
    "NOT_ACCEPTABLE": "The requested media type (`Accept`) is not available.",
    "UNSUPPORTED_MEDIA_TYPE": "The body is not `application/json`.",
    "RATE_LIMITED": "Too many requests of this token, its key or policy, or its owner, or too many "
    "failed authentications from this address.",
}
# The server itself returns this error. Percent-encoding can lengthen a valid filter too much.
_TOO_LONG: Final = ErrorDoc(414, "URI_TOO_LONG", "The request line is over 8190 bytes.")
_AUTHENTICATED: Final = (
    CredentialsMissing, CredentialsInvalid, TokenExpired, AddressNotAllowed,
    ScopeInsufficient, TokenKindUnsupported, CallerChanged,
    exceptions.Throttled, *FAILURES,
)  # fmt: skip
_OF_JSON_BODY: Final = (
    exceptions.ParseError, exceptions.ValidationError,
    RequestTimeout, exceptions.UnsupportedMediaType,
)  # fmt: skip
_OF_PARAMETER: Final[dict[str, tuple[type[exceptions.APIException], ...]]] = {
    "filter": (exceptions.ValidationError, InvalidFilter),
    "page_size": (exceptions.ValidationError,),
    "page_token": (InvalidPageToken,),
}


def errors_of(view: Any, operation: dict[str, Any], *, is_raw: bool) -> Iterator[ErrorDoc]:
    """Yield the possible errors of an operation.

    ``is_raw`` is true if the view reads the body itself.
    """
    yield from _HANDLERS
    errors: list[type[exceptions.APIException]] = [exceptions.NotAcceptable]
    if not getattr(view, "public", False):
        errors += _AUTHENTICATED
    names = {parameter["name"]: parameter["in"] for parameter in operation.get("parameters", [])}
    if "path" in names.values():
        errors.append(exceptions.NotFound)
    if "id" in names:
        errors.append(view.not_found)
    if "filter" in names:
        yield _TOO_LONG
    for name in names:
        errors += _OF_PARAMETER.get(name, ())
    if is_idempotent(view):
        errors += idempotency.ERRORS
    if view.request.method in ("POST", "PUT", "PATCH") and not is_raw:
        errors += _OF_JSON_BODY
    if view.request.method not in getattr(view, "reads_bodies_of", ()):
        errors += (LengthRequired, BodyTooLarge)  # also where no body is read (api.lengths)
    yield from map(error_doc, errors)


def error_doc(error: type[exceptions.APIException]) -> ErrorDoc:
    """Return the documentation of an error, with its ``meaning``."""
    reason = reason_of(error)
    meaning: str = _MEANINGS.get(reason) or vars(error)["meaning"]
    return ErrorDoc(int(error.status_code), reason, meaning.replace("``", "`"))
