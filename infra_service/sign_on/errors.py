from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.models import User


class SignOnRefusedError(Exception):
    """Nobody is let in; ``reason`` is a word for the log and the trail.

    ``user`` and ``subject`` are of who the provider says it was, where that is proved.
    ``received`` are the names that the ID token had instead of a mapped group: groups, or claims.
    """

    def __init__(
        self,
        reason: str,
        user: User | None = None,
        subject: str = "",
        received: Sequence[str] = (),
    ) -> None:
        super().__init__(reason)
        self.received = list(received)
        self.reason, self.user, self.subject = reason, user, subject


class ProviderUnavailableError(Exception):
    """The provider does not answer, or not as one does; the message says how."""
