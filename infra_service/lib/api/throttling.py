"""Rate limits for tokens, keys and owners, and for failures and log-in attempts by address."""

from __future__ import annotations

import ipaddress
import math
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from rest_framework.exceptions import Throttled
from rest_framework.permissions import BasePermission

from infra_service.lib.api.counters import WINDOW
from infra_service.lib.api.limits import Limit, first_exceeded, limiter

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from infra_service.lib.api.limits import Usage

#: Headers of draft-ietf-httpapi-ratelimit-headers-10, as structured fields (RFC 9651): the limits,
#: and the remaining requests for each limit.
POLICY: Final = "RateLimit-Policy"
REMAINING: Final = "RateLimit"
#: The request attribute that contains the usage of the request's limits.
_USAGES: Final = "rate_limit_usages"
_COUNTED: Final = {
    "token": "requests of this token",
    "key": "requests of this key and its tokens",
    "owner": "requests of the keys and tokens of this owner",
    "address": "failed authentications from this address",
    "login": "log-in attempts from this address",
}


class RateLimited(Throttled):
    """A request that exceeds a rate limit, which ``metadata`` names."""

    def __init__(self, exceeded: Usage) -> None:
        kind, _name, most = exceeded.limit
        super().__init__(exceeded.wait, f"Too many {_COUNTED[kind]}: at most {most} a minute.")
        self.metadata = {"limit": kind, "requests_per_minute": str(most)}


class WithinLimits(BasePermission):
    """A permission that counts each authenticated request for its token, key and owner.

    This permission is the first, because DRF checks throttles after permissions, and would not
    count requests that another permission rejects.
    """

    def has_permission(self, request: Request, _view: APIView) -> bool:
        """Return True within the limits.

        Raises:
            RateLimited: a limit is exceeded.
        """
        caller: Any = request.auth
        if caller is None:
            return True
        origin_id = caller.api_key_id or caller.trust_policy_id
        owners = _of_owner(origin_id, caller.user_id)
        _require(request._request, _of_token(caller.token_id), *owners)
        return True


def count_exchange(request: HttpRequest, trust_policy_id: str, owner_id: uuid.UUID) -> None:
    """Count a token exchange, after the verification of its assertion.

    Raises:
        RateLimited: a limit is exceeded.
    """
    _require(request, *_of_owner(trust_policy_id, owner_id))


def count_failure(request: HttpRequest, token_id: str | None = None) -> Usage | None:
    """Count a failed authentication for its address, and for its token if it is known.

    Only failures are counted and rejected, because many clients may share an address, and a client
    with an expired token must not block the other clients. Successful requests need no limit by
    address, because secrets are too long to guess. Failures do not count for the key and the owner
    of a token, because anyone who finds an expired token could block that key and owner.
    """
    limits = [Limit("address", _network(request), settings.RATE_LIMIT_FAILURES)]
    if token_id is not None:
        limits.append(_of_token(token_id))
    exceeded = limiter().hit(*limits)
    if exceeded is not None:  # else, the count reveals other clients' requests
        _describe_later(request, [exceeded])
    return exceeded


def count_login(request: HttpRequest) -> Usage | None:
    """Count an attempt to log in with a password.

    Every attempt counts, because passwords can be guessed. An attempt beyond the limit is rejected
    before the password is checked.
    """
    return limiter().hit(Limit("login", _network(request), settings.RATE_LIMIT_LOGINS))


def add_headers(request: HttpRequest, response: HttpResponse) -> None:
    """Describe the limits of an authenticated request, or the limit that rejected the request.

    The names of the limits match the metadata of ``RateLimited``.
    """
    usages: list[Usage] = getattr(request, _USAGES, [])
    if usages:
        limits = (usage.limit for usage in usages)
        response[POLICY] = ", ".join(f'"{kind}";q={most};w={WINDOW}' for kind, _, most in limits)
        # Rounded up like Retry-After, so that the next window has begun.
        response[REMAINING] = ", ".join(
            f'"{each.limit.kind}";r={each.remaining};t={math.ceil(each.wait)}' for each in usages
        )


def _require(request: HttpRequest, *limits: Limit) -> None:
    usages = limiter().count(*limits)
    _describe_later(request, usages)
    if exceeded := first_exceeded(usages):
        raise RateLimited(exceeded)


def _describe_later(request: HttpRequest, usages: list[Usage]) -> None:
    setattr(request, _USAGES, usages)


def _of_owner(origin_id: str | None, owner_id: uuid.UUID) -> list[Limit]:
    """Return the limits of an owner, and of the key or trust policy behind the token."""
    owner = Limit("owner", str(owner_id), settings.RATE_LIMIT_OWNER)
    return [Limit("key", origin_id, settings.RATE_LIMIT_KEY), owner] if origin_id else [owner]


def _of_token(token_id: str) -> Limit:
    return Limit("token", token_id, settings.RATE_LIMIT_TOKEN)


def _network(request: HttpRequest) -> str:
    """Return the client's IPv4 address, or its IPv6 /64, which may belong to a single host."""
    address: str = request.META["REMOTE_ADDR"]  # the client's address: client_address.py
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
