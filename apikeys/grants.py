"""Who calls, and what they may do, where and until when; nobody hands on more than they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from apikeys.bindings import EVERYWHERE, Binding
from apikeys.errors import GrantExceeded
from apikeys.networks import ANYWHERE, Networks
from apikeys.scopes import Scope, with_included

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterable

    from apikeys.tokens import TokenKind


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes, where they work and until when: what a token holds, or is to be given.

    An end that is None never comes.
    """

    scopes: frozenset[str]
    binding: Binding = EVERYWHERE
    expires_at: dt.datetime | None = None
    networks: Networks = ANYWHERE

    def columns(self) -> dict[str, Any]:
        """Return what the columns of a row hold."""
        return {
            "scopes": sorted(self.scopes),
            "expires_at": self.expires_at,
            "allowed_networks": self.networks.column(),
            **self.binding.columns(),
        }

    def is_within(self, other: Grant) -> bool:
        """Whether the other may do all of this, for as long."""
        return (
            self.scopes <= with_included(other.scopes)
            and self.binding.is_within(other.binding)
            and _ends_by(self.expires_at, other.expires_at)
            and self.networks.is_within(other.networks)
        )

    @property
    def is_empty(self) -> bool:
        """Whether it allows nothing: no row holds such a grant."""
        return not self.scopes or self.binding.is_empty or self.networks.ranges == frozenset()

    def intersection(self, other: Grant) -> Grant:
        """Return what both may do, for as long as both may."""
        ends = [end for end in (self.expires_at, other.expires_at) if end is not None]
        return Grant(
            with_included(self.scopes) & with_included(other.scopes),
            self.binding.intersection(other.binding),
            min(ends, default=None),
            self.networks.intersection(other.networks),
        )

    def handed_on(
        self,
        scopes: Iterable[str],
        binding: Binding | None,
        expires_at: dt.datetime | None,
        networks: Networks | None = None,
    ) -> Grant:
        """Return what its holder gives away; binding and networks are the holder's unless given.

        Raises:
            GrantExceeded: it would be more than what is held.
        """
        where = self.binding if binding is None else binding
        wanted = Grant(
            frozenset(scopes),
            where.within_applications_of(self.binding),
            expires_at,
            self.networks if networks is None else networks,
        )
        self.check(wanted)
        return wanted

    def check(self, wanted: Grant, holder: str = "Your token") -> None:
        """Refuse to hand on what is not held.

        Raises:
            GrantExceeded: names the scopes, the end or the networks, or says that the binding is
                too wide.
        """
        if missing := wanted.scopes - with_included(self.scopes):
            raise GrantExceeded(holder, scopes=sorted(missing))
        if not wanted.binding.is_within(self.binding):
            raise GrantExceeded(holder)
        if not _ends_by(wanted.expires_at, self.expires_at):
            raise GrantExceeded(holder, latest=self.expires_at)
        if not wanted.networks.is_within(self.networks):
            raise GrantExceeded(holder, networks=self.networks.column() or ())


#: What an operator holds, at the command line and in the admin.
EVERYTHING: Final = Grant(frozenset(Scope.values))


def _ends_by(end: dt.datetime | None, latest: dt.datetime | None) -> bool:
    return latest is None or (end is not None and end <= latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller, as ``request.user`` and ``request.auth``."""

    kind: TokenKind
    token_id: str
    # The key itself, or the key that the token was minted from; None when an operator issued it.
    api_key_id: str | None
    # The policy by which a pipeline got the token; None for all others.
    trust_policy_id: str | None
    user_id: uuid.UUID
    username: str
    scopes: frozenset[str]
    binding: Binding
    expires_at: dt.datetime | None
    # Of the secret that was sent: a key has two for a while after a rotation.
    digest: bytes = field(repr=False)
    # Whether it is the secret before the key's last rotation, or a token from before that.
    is_retired: bool
    # As they were read, to find out whether somebody has changed the token, or its origin, since.
    revision: int
    api_key_revision: int | None
    trust_policy_revision: int | None
    networks: Networks = ANYWHERE
    is_authenticated: bool = True

    @property
    def grant(self) -> Grant:
        """What the caller may hand on, at most until its end; a retired secret not apikey:write."""
        lost = {Scope.APIKEY_WRITE.value} if self.is_retired else set()
        return Grant(self.scopes - lost, self.binding, self.expires_at, self.networks)
