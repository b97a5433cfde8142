from __future__ import annotations


class FetchError(Exception):
    """A failed request; its message gives the reason."""


class NoResponseError(FetchError):
    """The network or the protocol failed; ``__cause__`` is the error."""

    def __init__(self, error: Exception) -> None:
        # The error's text is omitted, because it can contain data from the server.
        super().__init__(f"no response: {type(error).__name__}")


class TooLargeError(FetchError):
    """A body has ``size_bytes`` or more, and ``limit`` allows less."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        super().__init__(f"the response is longer than {limit} bytes")
        self.size_bytes, self.limit = size_bytes, limit
