from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.models import User


class SignOnRefusedError(Exception):
    """The sign-on was refused; ``reason`` is a word for the log and the audit log.

    ``user`` and ``subject`` identify the user if the provider has proved the identity. ``received``
    are the names in the ID token in place of a mapped group: groups, or claims.
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
    """The provider is unreachable or its response is invalid; the message has the reason."""
