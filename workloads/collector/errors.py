from __future__ import annotations

from http import HTTPStatus


class KubernetesError(Exception):
    """The API server did not return the object. `retry_after` is the requested delay in seconds."""

    retry_after: float = 0.0


class UnreachableError(KubernetesError):
    """The response is missing or incomplete."""


class InvalidAnswerError(UnreachableError):
    """The response is invalid or too large."""


class EndedEarlyError(UnreachableError):
    """A watch ended early without an event, so it may never have started."""


class ClosedError(UnreachableError):
    """The client was closed, so its threads must end."""


class RefusedError(KubernetesError):
    """The status is not 200, or a watch contains an error."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after = retry_after

    @property
    def is_final(self) -> bool:
        """Return whether a retry would fail in the same way."""
        expected = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        return self.status < HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in expected


class ExpiredError(RefusedError):
    """The version to continue from is too old (410). List the resource again."""

    @property
    def is_final(self) -> bool:
        """Return False, because a new list resolves the error."""
        return False
