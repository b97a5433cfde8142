"""Rate limits: of tokens, keys and owners, and of failures by address."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from rest_framework.exceptions import Throttled
from rest_framework.permissions import BasePermission

from infra_service.lib.api.limits import Limit, limiter

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from infra_service.lib.api.limits import Exceeded

_WHAT: Final = {
    "token": "requests of this token",
    "key": "requests of this key and its tokens",
    "owner": "requests of the keys and tokens of this owner",
    "address": "failed authentications from this address",
    "login": "tries to log in from this address",
}


class RateLimited(Throttled):
    """Too many requests; ``metadata`` says which limit it was."""

    def __init__(self, exceeded: Exceeded) -> None:
        kind, _name, most = exceeded.limit
        super().__init__(exceeded.wait, f"Too many {_WHAT[kind]}: at most {most} a minute.")
        self.metadata = {"limit": kind, "requests_per_minute": str(most)}


class WithinLimits(BasePermission):
    """Counts each request whose token is right, for the token, its key and its owner.

    A permission, and the first, because DRF asks its throttles after the permissions: requests
    that a later one refuses would be free.
    """

    def has_permission(self, request: Request, _view: APIView) -> bool:
        """Return True within the limits.

        Raises:
            RateLimited: says which limit is exceeded.
        """
        caller: Any = request.auth
        if caller is None:
            return True
        origin_id = caller.api_key_id or caller.trust_policy_id
        _count(_of_token(caller.token_id), *_of_owner(origin_id, caller.user_id))
        return True


def count_exchange(trust_policy_id: str, owner_id: uuid.UUID) -> None:
    """Count a request that has no token yet, and has proved that it may have one.

    Raises:
        RateLimited: says which limit is exceeded.
    """
    _count(*_of_owner(trust_policy_id, owner_id))


def count_failure(request: HttpRequest, token_id: str | None = None) -> Exceeded | None:
    """Count a failed authentication of this address, and of the token if it is a known one.

    Only failures are counted and only they are refused: behind one address there may be many, and
    one of them with an expired token must not shut the others out. Secrets are
    too long to be guessed. A token that has ended does not count for its key and owner, whom
    anybody who found that token could stop.
    """
    limits = [Limit("address", _network(request), settings.RATE_LIMIT_FAILURES)]
    if token_id is not None:
        limits.append(_of_token(token_id))
    return limiter().hit(*limits)


def count_login(request: HttpRequest) -> Exceeded | None:
    """Count a try to log in with a password.

    All are counted, and refused before the password is looked at: a password can be guessed.
    """
    return limiter().hit(Limit("login", _network(request), settings.RATE_LIMIT_LOGINS))


def _count(*limits: Limit) -> None:
    if exceeded := limiter().hit(*limits):
        raise RateLimited(exceeded)


def _of_owner(origin_id: str | None, owner_id: uuid.UUID) -> list[Limit]:
    """Return the limits of an owner, and of the key or trust policy that the token hangs on."""
    owner = Limit("owner", str(owner_id), settings.RATE_LIMIT_OWNER)
    return [Limit("key", origin_id, settings.RATE_LIMIT_KEY), owner] if origin_id else [owner]


def _of_token(token_id: str) -> Limit:
    return Limit("token", token_id, settings.RATE_LIMIT_TOKEN)


def _network(request: HttpRequest) -> str:
    """Return the address, or of IPv6 the /64, all of which one host may have."""
    address: str = request.META["REMOTE_ADDR"]  # of the client: addresses.py
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
