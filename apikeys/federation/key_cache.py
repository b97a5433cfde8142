"""Key sets of issuers, cached in the issuer's row and fetched by a single request.

A conditional UPDATE elects the request that fetches the keys. A hundred simultaneous requests in
several processes therefore cause a single fetch, and unknown keys cause at most two fetches a
minute. The request releases its database lock and connection before the fetch.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db.models import F, Q
from django.utils import timezone

from apikeys.federation.exchange_errors import AssertionRefused, IssuerBusy
from apikeys.federation.fetching import SECONDS, fetch_json
from apikeys.federation.key_formats import KeySetError, has_key, usable_keys
from apikeys.models.federation import Issuer
from infra_service.lib.http_client.deadline import Deadline
from infra_service.lib.http_client.errors import FetchError

if TYPE_CHECKING:
    from apikeys.federation.key_formats import KeySet

log = structlog.get_logger("apikeys.federation")

#: The age at which keys are fetched again.
FRESH: Final = dt.timedelta(hours=1)
#: The age at which the keys of an unreachable issuer stop working. The issuer may have withdrawn
#: them.
KEPT: Final = dt.timedelta(days=1)
#: The minimum interval between two fetches for an issuer.
PAUSE: Final = dt.timedelta(seconds=30)
#: A fetch without a result after this time belongs to a dead process.
_LOST_AFTER: Final = dt.timedelta(seconds=SECONDS + 1)
_POLL_SECONDS: Final = 0.1
#: The number of requests per process that may wait for another request's fetch. Other requests fail
#: with ``IssuerBusy``, so that a slow issuer cannot occupy every thread.
_waiting: Final = threading.BoundedSemaphore(16)

_COLUMNS: Final = (
    "key_set", "key_set_fetched_at", "key_set_asked_at", "key_set_settled_at", "failures",
)  # fmt: skip


def key_set_with(issuer: Issuer, kid: str) -> KeySet:
    """Return the issuer's key set, which contains the key with this id.

    Raises:
        AssertionRefused: the key is unknown, or the issuer has been unreachable for too long.
        IssuerBusy: too many requests wait for the issuer's keys.
    """
    if issuer.inline_keys is not None:
        return _with_key(_inline(issuer), kid)
    if (known := _known(issuer)) is not None and has_key(known, kid):
        if _is_fresh(issuer) or not _begin_fetch(issuer):
            return known
        _fetch_into_row(issuer)
    elif _begin_fetch(issuer):
        _fetch_into_row(issuer)
    else:
        _wait_for_fetch(issuer)
    known = _known(issuer)
    if known is None:
        raise AssertionRefused(
            "keys_unavailable",
            f"the keys could not be fetched, {issuer.failures} consecutive times",
        )
    return _with_key(known, kid)


def fetch_keys(issuer: Issuer) -> KeySet:
    """Fetch the issuer's current keys, from the key set URL or through the discovery document.

    Raises:
        FetchError: the keys or the discovery document are unavailable or invalid.
    """
    deadline = Deadline(SECONDS)
    address: Any = issuer.jwks_url
    if not address:
        about = f"{issuer.url.removesuffix('/')}/.well-known/openid-configuration"
        document = fetch_json(about, issuer.ca, deadline)
        if not isinstance(document, dict) or document.get("issuer") != issuer.url:
            raise FetchError(f"{about} names another issuer")
        address = document.get("jwks_uri")
        if not isinstance(address, str):
            raise FetchError(f"{about} has no jwks_uri")
    try:
        return usable_keys(fetch_json(address, issuer.ca, deadline))
    except KeySetError as error:
        raise FetchError(f"{address}: {error}") from error


def _with_key(key_set: KeySet, kid: str) -> KeySet:
    if not has_key(key_set, kid):
        raise AssertionRefused("key_unknown", "the issuer has no key with this id")
    return key_set


def _inline(issuer: Issuer) -> KeySet:
    try:
        return usable_keys(issuer.inline_keys)
    except KeySetError as error:
        raise AssertionRefused("keys_unavailable", str(error)) from error


def _known(issuer: Issuer) -> KeySet | None:
    """Return the keys in the row, unless they are too old."""
    return issuer.key_set if _is_within(issuer.key_set_fetched_at, KEPT) else None


def _is_fresh(issuer: Issuer) -> bool:
    return _is_within(issuer.key_set_fetched_at, FRESH)


def _is_within(moment: dt.datetime | None, age: dt.timedelta) -> bool:
    """Return whether the time is at most this long ago.

    The clocks of servers differ by seconds. A later time is from before a clock was set back, and
    must not delay a fetch until that time.
    """
    return moment is not None and -PAUSE <= timezone.now() - moment < age


def _begin_fetch(issuer: Issuer) -> bool:
    """Record the start of a fetch. Return False if another fetch started within the interval."""
    if _is_within(issuer.key_set_asked_at, PAUSE):
        return False
    now = timezone.now()
    recent = Q(key_set_asked_at__gt=now - PAUSE, key_set_asked_at__lte=now + PAUSE)
    due = Q(key_set_asked_at=None) | ~recent
    return bool(Issuer.objects.filter(due, pk=issuer.pk).update(key_set_asked_at=now))


def _fetch_into_row(issuer: Issuer) -> None:
    """Fetch the keys and store them in the row. A failed fetch keeps the old keys."""
    began = timezone.now()
    # If the source of the keys changed meanwhile, these keys are obsolete.
    row = Issuer.objects.filter(pk=issuer.pk, revision=issuer.revision)
    try:
        key_set = fetch_keys(issuer)
    except FetchError as error:
        log.warning("issuer_keys_unavailable", issuer_id=issuer.pk, error=str(error))
        row.update(failures=F("failures") + 1, key_set_settled_at=timezone.now())
    else:
        row.update(
            key_set=key_set,
            key_set_fetched_at=began,
            key_set_settled_at=timezone.now(),
            failures=0,
        )
    issuer.refresh_from_db(fields=_COLUMNS)


def _wait_for_fetch(issuer: Issuer) -> None:
    """Wait until another request's fetch ends. Return immediately if no fetch is in progress."""
    issuer.refresh_from_db(fields=_COLUMNS)
    if not _is_being_fetched(issuer):
        return
    if not _waiting.acquire(blocking=False):
        raise IssuerBusy
    try:
        while _is_being_fetched(issuer):
            time.sleep(_POLL_SECONDS)
            issuer.refresh_from_db(fields=_COLUMNS)
    finally:
        _waiting.release()


def _is_being_fetched(issuer: Issuer) -> bool:
    requested_at, settled_at = issuer.key_set_asked_at, issuer.key_set_settled_at
    if requested_at is None or not _is_within(requested_at, _LOST_AFTER):
        return False
    return settled_at is None or settled_at < requested_at
