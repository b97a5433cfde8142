from __future__ import annotations

from http import HTTPStatus


class KubernetesError(Exception):
    """The API server did not deliver the object; `retry_after` is its requested delay (s)."""

    retry_after: float = 0.0


class UnreachableError(KubernetesError):
    """The response is missing, or broke off."""


class InvalidAnswerError(UnreachableError):
    """The response is not the JSON of an API server."""


class EndedEarlyError(UnreachableError):
    """A watch ended long before its time without an event: it may never have started."""


class ClosedError(UnreachableError):
    """The client was closed meanwhile: its threads should end, too."""


class RefusedError(KubernetesError):
    """The response is not 200, or a watch contains an error."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after = retry_after

    @property
    def is_final(self) -> bool:
        """Return whether a repetition would have the same result."""
        expected = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        return self.status < HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in expected


class ExpiredError(RefusedError):
    """410: the version to continue from is too old; list again from the start."""

    @property
    def is_final(self) -> bool:
        """Return False, because a new list resolves it."""
        return False
