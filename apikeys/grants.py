"""Grants of callers: scopes, binding, networks and expiry.

A caller can grant no more than its own grant.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from apikeys.bindings import EVERYWHERE, Binding
from apikeys.errors import GrantExceeded
from apikeys.networks import ANYWHERE, Networks
from apikeys.scopes import MANAGING, Scope, with_included

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterable

    from apikeys.tokens import TokenKind


class Default(enum.Enum):
    """The creator's expiry as the default of a new credential. None means no expiry."""

    EXPIRY = enum.auto()


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes, binding, networks and expiry of a token.

    None as the expiry means no expiry.
    """

    scopes: frozenset[str]
    binding: Binding = EVERYWHERE
    expires_at: dt.datetime | None = None
    networks: Networks = ANYWHERE

    def columns(self) -> dict[str, Any]:
        """Return the values for the columns of a row."""
        return {
            "scopes": sorted(self.scopes),
            "expires_at": self.expires_at,
            "allowed_networks": self.networks.column(),
            **self.binding.columns(),
        }

    def is_within(self, other: Grant) -> bool:
        """Return whether the other grant includes this grant, and expires no earlier."""
        return (
            self.scopes <= with_included(other.scopes)
            and self.binding.is_within(other.binding)
            and _expires_by(self.expires_at, other.expires_at)
            and self.networks.is_within(other.networks)
        )

    @property
    def is_empty(self) -> bool:
        """Return whether the grant allows nothing. Rows never contain an empty grant."""
        return not self.scopes or self.binding.is_empty or self.networks.ranges == frozenset()

    def intersection(self, other: Grant) -> Grant:
        """Return the intersection of both grants, with the earlier expiry."""
        ends = [end for end in (self.expires_at, other.expires_at) if end is not None]
        return Grant(
            with_included(self.scopes) & with_included(other.scopes),
            self.binding.intersection(other.binding),
            min(ends, default=None),
            self.networks.intersection(other.networks),
        )

    def delegated(
        self,
        scopes: Iterable[str],
        binding: Binding | None,
        expires_at: dt.datetime | Default | None,
        networks: Networks | None = None,
    ) -> Grant:
        """Return a grant for another credential.

        The binding, expiry and networks default to those of this grant. The defaults of a minted
        token can be unusable: after a change to its key, the common binding can be empty, and the
        number of common networks can exceed the limit of a credential.

        Raises:
            GrantExceeded: the result would exceed this grant, or its defaults are unusable.
        """
        where = self.binding if binding is None else binding
        wanted = Grant(
            frozenset(scopes),
            where.within_applications_of(self.binding),
            self.expires_at if expires_at is Default.EXPIRY else expires_at,
            self.networks if networks is None else networks,
        )
        self.check(wanted)
        if wanted.binding.is_empty:
            raise GrantExceeded("Your token")
        if wanted.networks.is_over_limit:
            raise GrantExceeded("Your token", networks=self.networks.column() or ())
        return wanted

    def check(self, wanted: Grant, holder: str = "Your token") -> None:
        """Refuse a grant that exceeds this grant.

        Raises:
            GrantExceeded: the scopes, binding, expiry or networks exceed this grant.
        """
        if missing := wanted.scopes - with_included(self.scopes):
            raise GrantExceeded(holder, scopes=sorted(missing))
        if not wanted.binding.is_within(self.binding):
            raise GrantExceeded(holder)
        if not _expires_by(wanted.expires_at, self.expires_at):
            raise GrantExceeded(holder, latest=self.expires_at)
        if not wanted.networks.is_within(self.networks):
            raise GrantExceeded(holder, networks=self.networks.column() or ())


#: The grant of an operator, in commands and the admin.
EVERYTHING: Final = Grant(frozenset(Scope.values))


def _expires_by(end: dt.datetime | None, latest: dt.datetime | None) -> bool:
    return latest is None or (end is not None and end <= latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller, as ``request.user`` and ``request.auth``."""

    kind: TokenKind
    token_id: str
    # The key itself, or the key that minted the token; None for issued tokens.
    api_key_id: str | None
    # The policy that issued a pipeline's token; otherwise None.
    trust_policy_id: str | None
    user_id: uuid.UUID
    username: str
    scopes: frozenset[str]
    binding: Binding
    expires_at: dt.datetime | None
    # The digest of the secret in use: a key has two secrets during a grace period.
    digest: bytes = field(repr=False)
    # Whether a rotation of the key replaced the secret, or the secret that minted the token.
    is_retired: bool
    # The revisions at authentication, to detect later changes to the token or its origin.
    revision: int
    api_key_revision: int | None
    trust_policy_revision: int | None
    networks: Networks = ANYWHERE
    is_authenticated: bool = True

    @property
    def grant(self) -> Grant:
        """Return the grant that the caller can delegate, without ``MANAGING`` if it is retired."""
        scopes = self.scopes - MANAGING if self.is_retired else self.scopes
        return Grant(scopes, self.binding, self.expires_at, self.networks)
