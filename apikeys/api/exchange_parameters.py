"""Parameters of a token exchange (RFC 8693), as a form or JSON. Duplicates are rejected."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from django.http import UnreadablePostError
from rest_framework.exceptions import UnsupportedMediaType

from apikeys.federation.exchange_errors import NarrowingRefused
from infra_service.lib.api.bodies import BodyIncomplete, BodyTooLarge

if TYPE_CHECKING:
    from rest_framework.request import Request

MAX_BYTES: Final = 16 * 1024
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name
SUBJECT_TOKEN_TYPES: Final = (
    "urn:ietf:params:oauth:token-type:jwt",
    "urn:ietf:params:oauth:token-type:id_token",
)
_REFUSED: Final = ("actor_token", "client_secret", "client_assertion")
_KNOWN: Final = frozenset({
    "grant_type", "client_id", "subject_token", "subject_token_type", "requested_token_type",
    "scope", "ttl", "resource", "audience", *_REFUSED,
})  # fmt: skip
_MAX_PARAMETERS: Final = 50
#: Seconds, 1 to 43200 (twelve hours).
TTL_PATTERN: Final = "^([1-9][0-9]{0,3}|[1-3][0-9]{4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)s?$"
_POLICY_ID: Final = re.compile(r"fed-[0-9a-z]{1,36}", re.ASCII)
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"


class RequestRefused(NarrowingRefused):
    """A missing or invalid parameter, which is reported before any other check."""


@dataclass(frozen=True, slots=True)
class ExchangeParameters:
    policy_id: str
    token: str
    scopes: frozenset[str] | None
    ttl: dt.timedelta | None


def read_parameters(request: Request) -> ExchangeParameters:
    """Return the parameters of a request; unknown parameters are ignored (RFC 6749 §3.2).

    Raises:
        RequestRefused: a parameter is missing or invalid.
        BodyTooLarge, BodyIncomplete, UnsupportedMediaType: the body is invalid.
    """
    given = _once(_pairs(request))
    if given.get("grant_type") != GRANT_TYPE:
        is_other = "grant_type" in given
        error = "unsupported_grant_type" if is_other else "invalid_request"
        raise RequestRefused(error, f"grant_type: must be {GRANT_TYPE}.")
    if given.get("subject_token_type") not in SUBJECT_TOKEN_TYPES:
        raise _wrong("subject_token_type", f"must be {' or '.join(SUBJECT_TOKEN_TYPES)}")
    if given.get("requested_token_type", ACCESS_TOKEN_TYPE) != ACCESS_TOKEN_TYPE:
        raise _wrong("requested_token_type", f"must be {ACCESS_TOKEN_TYPE}, or omitted")
    if given.keys() & {"resource", "audience"}:
        raise RequestRefused("invalid_target", "A policy issues tokens for this service only.")
    for name in _REFUSED:
        if name in given:
            raise _wrong(name, "not supported")
    for name in ("client_id", "subject_token"):
        if name not in given:
            raise _wrong(name, "required")
    if _POLICY_ID.fullmatch(given["client_id"]) is None:
        raise _wrong("client_id", "must be the id of a trust policy, such as fed-...")
    return ExchangeParameters(
        policy_id=given["client_id"],
        token=given["subject_token"],
        scopes=_scopes(given["scope"]) if "scope" in given else None,
        ttl=_ttl(given["ttl"]) if "ttl" in given else None,
    )


def _pairs(request: Request) -> list[tuple[Any, Any]]:
    """Return the names and values in the body, including duplicates."""
    http: Any = request._request
    if int(http.META.get("CONTENT_LENGTH") or 0) > MAX_BYTES:
        raise BodyTooLarge(MAX_BYTES)
    media_type = http.content_type
    if media_type not in (_FORM, _JSON):
        raise UnsupportedMediaType(media_type)
    try:
        text = http.body.decode()
        if media_type == _FORM:
            return list(
                parse_qsl(
                    text,
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=_MAX_PARAMETERS,
                )
            )
        found = json.loads(text, object_pairs_hook=_Pairs)
    except UnreadablePostError as error:
        raise BodyIncomplete from error
    except (ValueError, RecursionError) as error:
        raise _wrong("body", f"must be a form or JSON in UTF-8: {error}") from error
    if not isinstance(found, _Pairs):
        raise _wrong("body", "must be a JSON object or a form")
    return list(found)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as pairs, including duplicates."""


def _once(pairs: list[tuple[Any, Any]]) -> dict[str, str]:
    """Return the parameters; an empty parameter counts as missing (RFC 6749 §3.2)."""
    given: dict[str, str] = {}
    for name, value in pairs:
        if name == "ttl" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # noqa: PLW2901 - as in a form
        if name in given:
            raise _wrong(name, "must not be repeated")
        if name in _KNOWN and not isinstance(value, str):
            raise _wrong(name, "must be a string")
        given[name] = value
    return {name: value for name, value in given.items() if value and name in _KNOWN}


def _scopes(text: str) -> frozenset[str]:
    if not (scopes := frozenset(text.split())):
        raise RequestRefused("invalid_scope", "scope: must name at least one scope, or be omitted.")
    return scopes


def _ttl(text: str) -> dt.timedelta:
    if re.fullmatch(TTL_PATTERN, text, re.ASCII) is None:
        raise _wrong("ttl", "must be 1 to 43200 seconds, such as 900 or 900s")
    return dt.timedelta(seconds=int(text.removesuffix("s")))


def _wrong(name: str, problem: str) -> RequestRefused:
    shown = "".join(c for c in name[:64] if c.isascii() and c.isprintable() and c not in '"\\')
    return RequestRefused("invalid_request", f"{shown}: {problem}.")
