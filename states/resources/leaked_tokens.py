"""Record keys and tokens of this service that leaked into states, and optionally revoke them.

A row stays after a push without the token, because old versions still contain the token. It is
deleted when the token becomes inactive. The token's own row determines whether the token is active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings

from apikeys import audit, exposure
from apikeys.actors import Actor
from states.models import LeakedToken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apikeys.exposure import Exposed
    from states.models import State
    from states.resources.leaks import Leak

#: Maximum rows to read per statement.
_BATCH: Final = 500


class ActiveLeak(NamedTuple):
    """An active key or token in a state, with its owner."""

    row: LeakedToken
    exposed: Exposed


def report_leaks(state: State, leaks: Sequence[Leak]) -> None:
    """Store the active tokens that a state contains, and record an event for each new token.

    With REVOKE_TOKENS_IN_STATES, also revoke the tokens. Call this in a transaction.
    """
    if not leaks:
        return
    by_digest = {exposure.digest_of(leak.token): leak for leak in leaks}
    found = exposure.working(by_digest.keys())
    own = LeakedToken.objects.filter(state=state)
    known = {bytes(digest) for digest in own.values_list("digest", flat=True)}
    # Inactive tokens are removed, so a pipeline that leaks a token per push leaves a single row.
    own.filter(digest__in=known - exposure.working(known).keys()).delete()
    actor = Actor.of_command("index_states")
    for digest, exposed in found.items():
        leak = by_digest[digest]
        if digest not in known:
            LeakedToken.objects.create(
                state=state,
                digest=digest,
                address=leak.address,
                version_number=state.version_number,
            )
            audit.authorize_and_record(
                actor,
                "state.token_found",
                state.pk,
                found=exposed.credential.pk,
                version=state.version_number,
                address=leak.address,
            )
        if settings.REVOKE_TOKENS_IN_STATES:
            exposure.revoke(exposed, actor=actor)


def newest_working(most: int) -> tuple[list[ActiveLeak], bool]:
    """Return the active tokens among the newest ``most``, and whether there are more."""
    rows = list(LeakedToken.objects.order_by("-id")[: most + 1])
    found = exposure.working({bytes(row.digest) for row in rows[:most]})
    lying = [
        ActiveLeak(row, found[bytes(row.digest)])
        for row in rows[:most]
        if bytes(row.digest) in found
    ]
    return lying, len(rows) > most


def remove_inactive() -> Iterator[int]:
    """Remove the rows of inactive tokens, and yield the number of removed rows per batch."""
    rest = LeakedToken.objects.order_by("id")
    while rows := list(rest.values_list("pk", "digest")[:_BATCH]):
        found = exposure.working({bytes(digest) for _, digest in rows})
        ended: list[Any] = [pk for pk, digest in rows if bytes(digest) not in found]
        yield LeakedToken.objects.filter(pk__in=ended).delete()[0] if ended else 0
        rest = rest.filter(pk__gt=rows[-1][0])
