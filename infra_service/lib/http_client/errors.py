from __future__ import annotations

from infra_service.lib.error_text import reason_of


class FetchError(Exception):
    """A request failed. The message states the reason."""


class NoResponseError(FetchError):
    """The network or the protocol failed. ``__cause__`` is the error."""

    def __init__(self, error: Exception) -> None:
        # The text of an HTTPException can contain data from the server.
        reason = reason_of(error) if isinstance(error, OSError) else type(error).__name__
        super().__init__(f"no response: {reason}")


class TooLargeError(FetchError):
    """A body has at least ``size_bytes`` bytes, which exceeds ``limit``."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        super().__init__(f"the response is longer than {limit} bytes")
        self.size_bytes, self.limit = size_bytes, limit
