"""The keys of an issuer, which stay in its row: whoever needs them fetches them for all.

Fetching is decided by one conditional UPDATE, so that a hundred requests at once fetch once, in
whatever process they are, and unknown keys make nobody fetch more than twice a minute. Nothing of
the database is held meanwhile.
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
from apikeys.federation.fetching import SECONDS, Deadline, fetch_json
from apikeys.federation.keys import KeySetError, has_key, usable_keys
from apikeys.models.federation import Issuer
from infra_service.lib.http_client.connecting import FetchError

if TYPE_CHECKING:
    from apikeys.federation.keys import KeySet

log = structlog.get_logger("apikeys.federation")

#: After so long somebody looks whether the keys are still those.
FRESH: Final = dt.timedelta(hours=1)
#: For so long keys go on to work while the issuer is away. Then nobody knows whose they are.
KEPT: Final = dt.timedelta(days=1)
#: Between two fetches of one issuer's keys, whatever is asked for.
PAUSE: Final = dt.timedelta(seconds=30)
#: A fetch that has not ended by then has died with its process.
_LOST_AFTER: Final = dt.timedelta(seconds=SECONDS + 1)
_LOOK_EVERY: Final = 0.1
#: So many requests of a process wait for keys that another fetches. The rest is told to come again:
#: an issuer that is slow must not take every thread.
_waiting: Final = threading.BoundedSemaphore(16)

_COLUMNS: Final = (
    "key_set", "key_set_fetched_at", "key_set_asked_at", "key_set_settled_at", "failures",
)  # fmt: skip


def key_set_with(issuer: Issuer, kid: str) -> KeySet:
    """Return the issuer's keys, among which is the one of this name.

    Raises:
        AssertionRefused: there is none, or the issuer has been away for too long.
        IssuerBusy: too many wait for its keys.
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
            "keys_unavailable", f"the keys could not be fetched, {issuer.failures} times in a row"
        )
    return _with_key(known, kid)


def fetch_keys(issuer: Issuer) -> KeySet:
    """Return the keys that the issuer has now, by its discovery document or from their address.

    Raises:
        FetchError: a sentence that says why they cannot be had.
    """
    deadline = Deadline()
    address: Any = issuer.jwks_url
    if not address:
        about = f"{issuer.url.removesuffix('/')}/.well-known/openid-configuration"
        document = fetch_json(about, issuer.ca, deadline)
        if not isinstance(document, dict) or document.get("issuer") != issuer.url:
            raise FetchError(f"{about} is about another issuer")
        address = document.get("jwks_uri")
        if not isinstance(address, str):
            raise FetchError(f"{about} has no jwks_uri")
    try:
        return usable_keys(fetch_json(address, issuer.ca, deadline))
    except KeySetError as error:
        raise FetchError(f"{address}: {error}") from error


def _with_key(key_set: KeySet, kid: str) -> KeySet:
    if not has_key(key_set, kid):
        raise AssertionRefused("key_unknown", "the issuer has no key of this name")
    return key_set


def _inline(issuer: Issuer) -> KeySet:
    try:
        return usable_keys(issuer.inline_keys)
    except KeySetError as error:
        raise AssertionRefused("keys_unavailable", str(error)) from error


def _known(issuer: Issuer) -> KeySet | None:
    """Return the keys in the row, unless they are too old."""
    fetched_at = issuer.key_set_fetched_at
    is_too_old = fetched_at is None or fetched_at <= timezone.now() - KEPT
    return None if is_too_old else issuer.key_set


def _is_fresh(issuer: Issuer) -> bool:
    fetched_at = issuer.key_set_fetched_at
    return fetched_at is not None and fetched_at > timezone.now() - FRESH


def _begin_fetch(issuer: Issuer) -> bool:
    """Say in the row that the keys are being fetched, unless somebody did within the pause."""
    now = timezone.now()
    if issuer.key_set_asked_at is not None and issuer.key_set_asked_at > now - PAUSE:
        return False
    due = Q(key_set_asked_at=None) | Q(key_set_asked_at__lte=now - PAUSE)
    return bool(Issuer.objects.filter(due, pk=issuer.pk).update(key_set_asked_at=now))


def _fetch_into_row(issuer: Issuer) -> None:
    """Fetch the keys and store them in the row, which keeps its old keys when the fetch fails."""
    began = timezone.now()
    # Whoever has changed where the keys come from meanwhile wants none of these.
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
    """Wait until the fetch that another request has begun is over; if there is none, not at all."""
    issuer.refresh_from_db(fields=_COLUMNS)
    if not _is_being_fetched(issuer):
        return
    if not _waiting.acquire(blocking=False):
        raise IssuerBusy
    try:
        while _is_being_fetched(issuer):
            time.sleep(_LOOK_EVERY)
            issuer.refresh_from_db(fields=_COLUMNS)
    finally:
        _waiting.release()


def _is_being_fetched(issuer: Issuer) -> bool:
    asked_at, settled_at = issuer.key_set_asked_at, issuer.key_set_settled_at
    if asked_at is None or asked_at <= timezone.now() - _LOST_AFTER:
        return False
    return settled_at is None or settled_at < asked_at
