"""Rate limits: requests per token, and failed authentications per address."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework.throttling import BaseThrottle

from infra_service.limits import limiter

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request
    from rest_framework.views import APIView


class TokenThrottle(BaseThrottle):
    """Limits the requests of one token; a minted token has a count of its own."""

    _wait: float | None = None

    def allow_request(self, request: Request, _view: APIView) -> bool:
        """Count the request, and say whether it is within the limit."""
        caller: Any = request.auth
        if caller is not None:
            name = f"token:{caller.token_id}"
            self._wait = limiter().seconds_to_wait(name, settings.RATE_LIMIT_TOKEN)
        return self._wait is None

    def wait(self) -> float | None:
        """Return the seconds until the next request is let in."""
        return self._wait


def wait_after_failure(request: HttpRequest) -> float | None:
    """Count a failed authentication of this address; return how long it should wait, if it should.

    Only failures are counted and only they are refused: behind one address there may be many, and
    one of them with an expired token must not shut the others out. There is nothing to guess.
    """
    return limiter().seconds_to_wait(f"address:{_network(request)}", settings.RATE_LIMIT_FAILURES)


def wait_before_login(request: HttpRequest) -> float | None:
    """Count a try to log in with a password; return how long this address should wait, if at all.

    All are counted, and refused before the password is looked at: a password can be guessed.
    """
    return limiter().seconds_to_wait(f"login:{_network(request)}", settings.RATE_LIMIT_LOGINS)


def _network(request: HttpRequest) -> str:
    """Return the address, or of IPv6 the /64, all of which one host may have."""
    address: str = request.META.get("REMOTE_ADDR", "")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6:  # noqa: PLR2004 - the protocol's number
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return address
