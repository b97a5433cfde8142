from __future__ import annotations

from http import HTTPStatus


class KubernetesError(Exception):
    """The API server did not give what was asked; `retry_after` is its wish, in seconds."""

    retry_after: float = 0.0


class UnreachableError(KubernetesError):
    """No answer, or one that broke off."""


class InvalidAnswerError(UnreachableError):
    """An answer that is not the JSON of an API server."""


class EndedEarlyError(UnreachableError):
    """A watch ended long before its time, and had brought nothing: it may never have begun."""


class ClosedError(UnreachableError):
    """The client was closed meanwhile: whoever asked is to end, too."""


class RefusedError(KubernetesError):
    """An answer other than 200, or an error within a watch."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after = retry_after

    @property
    def is_final(self) -> bool:
        """Whether asking again would give the same."""
        expected = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        return self.status < HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in expected


class ExpiredError(RefusedError):
    """410: what was asked to be continued is too old; it must be listed again from the start."""

    @property
    def is_final(self) -> bool:
        """Tell that a new list helps."""
        return False
