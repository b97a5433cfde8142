"""``Idempotency-Key``: a repeated POST returns the first response, without a second change.

Views decorate methods with ``@idempotent``. The response is stored in the transaction of the
change, so a crash loses both or neither. Failures are not stored. See
docs/adr/0067-idempotency-keys.md.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from infra_service.lib.api.idempotent_requests import IdempotentRequest
from infra_service.lib.api.rendering import JsonRenderer
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

HEADER: Final = "Idempotency-Key"
#: The header of a repeated response.
REPLAYED: Final = "Idempotent-Replayed"
MAX_LENGTH: Final = 255
PATTERN: Final = rf"^[ -~]{{1,{MAX_LENGTH}}}$"
_META: Final = "HTTP_IDEMPOTENCY_KEY"
_FORM: Final = re.compile(PATTERN)


class IdempotencyKeyInvalid(APIException):
    meaning = (
        "The `Idempotency-Key` header does not consist of 1 to 255 printable ASCII characters."
    )
    status_code = 400
    default_code = "IDEMPOTENCY_KEY_INVALID"
    default_detail = (
        "The Idempotency-Key must consist of 1 to 255 printable ASCII characters. Send a UUID."
    )


class IdempotencyKeyReused(APIException):
    meaning = "The caller has already sent this `Idempotency-Key` with another URL or body."
    status_code = 422
    default_code = "IDEMPOTENCY_KEY_REUSED"
    default_detail = (
        "This Idempotency-Key was sent with another URL or body within the last 24 hours. Send "
        "a new key with each new request."
    )


class IdempotencyKeyInUse(APIException):
    meaning = "The first request with this `Idempotency-Key` is still in progress."
    status_code = 409
    default_code = "IDEMPOTENCY_KEY_IN_USE"
    default_detail = (
        "The first request with this Idempotency-Key is still in progress. Try again later."
    )
    wait = 1


class IdempotentAnswerRemoved(APIException):
    meaning = (
        "The request succeeded. Its response contained a secret and was deleted after ten minutes."
    )
    status_code = 410
    rpc_status = "FAILED_PRECONDITION"
    default_code = "IDEMPOTENT_ANSWER_REMOVED"
    default_detail = (
        "The request with this Idempotency-Key succeeded, but its response was deleted, because a "
        "response with a secret is stored for only ten minutes. The request was not repeated. Find "
        "the object that it created or rotated, and rotate or revoke that object."
    )


#: The additional errors of an idempotent method.
ERRORS: Final = (
    IdempotencyKeyInvalid, IdempotencyKeyReused, IdempotencyKeyInUse, IdempotentAnswerRemoved,
)  # fmt: skip


class _LostRaceError(Exception):
    """A conflict with a concurrent request that stored its response under the same key."""


def idempotent(method: Callable[..., Response]) -> Callable[..., Response]:
    """Decorate a view's method to run once for each ``Idempotency-Key`` of a caller.

    Requests without the header do not require additional queries.
    """

    @functools.wraps(method)
    def once(view: Any, request: Request, **path: str) -> Response:
        if _META not in request.META:
            return method(view, request, **path)
        caller: Any = request.auth
        repeatable = _idempotent_request(request, caller.digest)
        if answer := _stored_answer(repeatable):
            return answer
        try:
            done = _act_and_store(repeatable, lambda: method(view, request, **path))
        except _LostRaceError as error:
            if answer := _stored_answer(repeatable):
                return answer
            raise IdempotencyKeyInUse from error
        IdempotentRequest.objects.remove_answers()
        return done

    once.is_idempotent = True  # type: ignore[attr-defined]
    return once


def is_idempotent(view: Any) -> bool:
    """Return whether the view's method for the request is idempotent."""
    name = getattr(view, "action", None) or view.request.method.lower()
    return getattr(getattr(view, name, None), "is_idempotent", False)


def stored_answer(request: Request, digest: bytes) -> Response | None:
    """Return the stored response to a caller, or None. ``digest`` identifies the caller's secret.

    Raises:
        IdempotencyKeyInvalid, IdempotencyKeyReused, IdempotentAnswerRemoved: see the classes.
    """
    return _stored_answer(_idempotent_request(request, digest)) if _META in request.META else None


def _idempotent_request(request: Request, digest: bytes) -> IdempotentRequest:
    """Return the row for the request, without a response.

    Raises:
        IdempotencyKeyInvalid: the header is not a valid key.
    """
    key = request.META[_META]
    if _FORM.fullmatch(key) is None:
        raise IdempotencyKeyInvalid
    _ = request.data  # rejects an invalid body
    django_request = request._request
    path = django_request.path.rstrip("/")
    text = f"{request.method} {path}?{request.META.get('QUERY_STRING', '')}\n"
    return IdempotentRequest(
        id=hashlib.sha256(digest + key.encode()).hexdigest(),
        fingerprint=hashlib.sha256(text.encode() + django_request.body).hexdigest(),
    )


def _stored_answer(repeatable: IdempotentRequest) -> Response | None:
    """Return the response to the first request with the key, or None for a new key.

    Raises:
        IdempotencyKeyReused: the first request was different.
        IdempotentAnswerRemoved: the response contained a secret and was deleted.
    """
    first = IdempotentRequest.objects.filter(pk=repeatable.pk).first()
    if first is None:
        return None
    if first.is_over:
        # Compare the time, too, because a concurrent request may have replaced the row.
        IdempotentRequest.objects.filter(pk=first.pk, created_at=first.created_at).delete()
        return None
    if first.fingerprint != repeatable.fingerprint:
        raise IdempotencyKeyReused
    body = first.answer_body()
    if body is None:
        raise IdempotentAnswerRemoved
    headers = {REPLAYED: "true", "Cache-Control": "no-store"}
    return Response(msgspec.Raw(body), first.status, headers=headers)


@retrying
def _act_and_store(repeatable: IdempotentRequest, act: Callable[[], Response]) -> Response:
    """Run the action and store the response in one transaction.

    The row is inserted first, so a concurrent duplicate waits for this transaction.

    Raises:
        _LostRaceError: a concurrent request has inserted the row.
    """
    with transaction.atomic():
        repeatable.created_at = timezone.now()
        try:
            repeatable.save(force_insert=True)
        except IntegrityError as error:
            raise _LostRaceError from error
        answer = act()
        has_secret = "secret" in answer.data
        repeatable.store(
            answer.status_code, JsonRenderer().render(answer.data), has_secret=has_secret
        )
    return answer
