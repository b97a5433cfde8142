"""Rate limits of tokens, keys and owners, and of failures by address."""

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

#: Structured fields (RFC 9651) of draft-ietf-httpapi-ratelimit-headers-10: the limits, and the
#: remaining requests of each.
POLICY: Final = "RateLimit-Policy"
REMAINING: Final = "RateLimit"
#: The attribute of a request with the usage of its limits.
_USAGES: Final = "rate_limit_usages"
_COUNTED: Final = {
    "token": "requests of this token",
    "key": "requests of this key and its tokens",
    "owner": "requests of the keys and tokens of this owner",
    "address": "failed authentications from this address",
    "login": "log-in attempts from this address",
}


class RateLimited(Throttled):
    """Too many requests; ``metadata`` names the exceeded limit."""

    def __init__(self, exceeded: Usage) -> None:
        kind, _name, most = exceeded.limit
        super().__init__(exceeded.wait, f"Too many {_COUNTED[kind]}: at most {most} a minute.")
        self.metadata = {"limit": kind, "requests_per_minute": str(most)}


class WithinLimits(BasePermission):
    """Count each authenticated request for its token, key and owner.

    This is the first permission, because DRF checks throttles after permissions: requests rejected
    by a later permission would not be counted.
    """

    def has_permission(self, request: Request, _view: APIView) -> bool:
        """Return True within the limits.

        Raises:
            RateLimited: with the exceeded limit.
        """
        caller: Any = request.auth
        if caller is None:
            return True
        origin_id = caller.api_key_id or caller.trust_policy_id
        owners = _of_owner(origin_id, caller.user_id)
        _require(request._request, _of_token(caller.token_id), *owners)
        return True


def count_exchange(request: HttpRequest, trust_policy_id: str, owner_id: uuid.UUID) -> None:
    """Count a token exchange, after its proof has been verified and before a token exists.

    Raises:
        RateLimited: with the exceeded limit.
    """
    _require(request, *_of_owner(trust_policy_id, owner_id))


def count_failure(request: HttpRequest, token_id: str | None = None) -> Usage | None:
    """Count a failed authentication for its address, and for its token if the token is known.

    Only failures are counted and rejected: many clients may share an address, and an expired token
    must not block them. Secrets are too long to guess. An expired token does not count for its key
    and owner, since anyone who found the token could block them.
    """
    limits = [Limit("address", _network(request), settings.RATE_LIMIT_FAILURES)]
    if token_id is not None:
        limits.append(_of_token(token_id))
    exceeded = limiter().hit(*limits)
    if exceeded is not None:  # before, the count would reveal the requests of other clients
        _describe_later(request, [exceeded])
    return exceeded


def count_login(request: HttpRequest) -> Usage | None:
    """Count an attempt to log in with a password.

    Every attempt counts, and is rejected before the password is checked: a password can be guessed.
    """
    return limiter().hit(Limit("login", _network(request), settings.RATE_LIMIT_LOGINS))


def add_headers(request: HttpRequest, response: HttpResponse) -> None:
    """Describe the limits of an authenticated request, or the limit that rejected the request.

    The names of the limits are those in the metadata of ``RateLimited``.
    """
    usages: list[Usage] = getattr(request, _USAGES, [])
    if usages:
        limits = (usage.limit for usage in usages)
        response[POLICY] = ", ".join(f'"{kind}";q={most};w={WINDOW}' for kind, _, most in limits)
        # Rounded up, as Retry-After is: the next window must have begun.
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
    """Return the IPv4 address, or the IPv6 /64, which a single host may own."""
    address: str = request.META["REMOTE_ADDR"]  # of the client: client_address.py
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
