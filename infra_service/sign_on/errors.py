from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.models import User


class SignOnRefusedError(Exception):
    """A refused sign-on. ``reason`` is a code for the log and the audit log.

    ``user`` and ``subject`` identify the user if the provider proved the identity. If no group is
    mapped, ``received`` lists the groups in the ID token, or the token's claims if it contains no
    groups.
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
    """An unreachable provider, or an invalid response. The message states the reason."""
