"""The credentials of an agent: a token from a file, or from an exchange of the pod's token."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode

import msgspec
import structlog

from workloads.collection import FailureReason
from workloads.collector.destinations import NotReportedError

if TYPE_CHECKING:
    from workloads.collector.service_connection import ServiceConnection

log = structlog.get_logger("workloads.collector")

# The share of a token's lifetime after which the collector exchanges a new token.
_RENEWED_AFTER: Final = 2 / 3
# The seconds between attempts if the exchange fails while the old token is still valid.
_RETRY_SECONDS: Final = 30.0
# The maximum size of a token file, in bytes.
_MOST_BYTES: Final = 16 * 1024


class Credentials(Protocol):
    """A source of the token for reports."""

    def token(self) -> str:
        """Return the current token.

        Raises:
            NotReportedError: no token is available.
        """

    def refused(self, token: str) -> None:
        """Handle the refusal of a token by the service."""


class TokenFile:
    """A token in a file that the operator rotates. Each request reads the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> str:
        return _read(self._path)

    def refused(self, _token: str) -> None:
        """Do nothing, because the next request reads the file again."""


class _Kept(msgspec.Struct):
    """A token from an exchange. Its wall-clock times stay valid after a restart of the process."""

    access_token: str
    renewed_at: float
    expires_at: float
    #: The digest of the exchanged assertion. The service accepts each assertion only once.
    assertion: str


class _Exchanged(msgspec.Struct):
    access_token: str
    expires_in: float


class ExchangedToken:
    """The token that the service issues in exchange for the pod's own token.

    The service accepts each token of the pod only once, so a restarted container would have to wait
    until Kubernetes rotates the token. `kept` is therefore a file for the issued token on an
    in-memory volume of the pod, or None.
    """

    def __init__(
        self, connection: ServiceConnection, policy: str, assertion: Path, kept: Path | None
    ) -> None:
        self._connection, self._policy = connection, policy
        self._assertion_file, self._file = assertion, kept
        self._kept = self._load()

    def token(self) -> str:
        kept, now = self._kept, time.time()
        if kept is not None and now < min(kept.renewed_at, kept.expires_at):
            return kept.access_token
        try:
            return self._exchange().access_token
        except NotReportedError as error:
            if kept is None or now >= kept.expires_at:
                raise
            log.warning("token_not_renewed", error=str(error))
            kept.renewed_at = now + _RETRY_SECONDS
            return kept.access_token

    def refused(self, token: str) -> None:
        """Obtain a new token before the next request. The policy may have been disabled."""
        if self._kept is not None and self._kept.access_token == token:
            self._kept.expires_at = 0.0

    def _exchange(self) -> _Kept:
        assertion = _read(self._assertion_file)
        digest = hashlib.sha256(assertion.encode()).hexdigest()
        if self._kept is not None and self._kept.assertion == digest:
            raise NotReportedError(
                "the pod's token has already been exchanged, and Kubernetes has not rotated it yet",
                FailureReason.REPORT_REFUSED,
            )
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "client_id": self._policy,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "subject_token": assertion,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        requested_at = time.time()
        answer = self._connection.send("POST", "/v1/oauth/token", urlencode(form).encode(), headers)
        if answer.status != HTTPStatus.OK:
            raise NotReportedError(
                f"the token exchange failed: {answer}",
                FailureReason.REPORT_REFUSED,
                answer.retry_after,
            )
        try:
            given = msgspec.json.decode(answer.body, type=_Exchanged)
        except (ValueError, RecursionError) as error:
            raise NotReportedError(
                "the token exchange failed: the response contains no token"
            ) from error
        self._kept = _Kept(
            access_token=given.access_token,
            renewed_at=requested_at + given.expires_in * _RENEWED_AFTER,
            expires_at=requested_at + given.expires_in,
            assertion=digest,
        )
        self._save(self._kept)
        return self._kept

    def _load(self) -> _Kept | None:
        """Return the token of the previous process, or None if the file is damaged or missing."""
        if self._file is None:
            return None
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Kept)
        except (OSError, ValueError, RecursionError):
            return None

    def _save(self, kept: _Kept) -> None:
        """Save the token for the next process atomically, readable only by this user."""
        if self._file is None:
            return
        try:
            number, name = tempfile.mkstemp(dir=self._file.parent)  # mode 0600
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(msgspec.json.encode(kept))
                Path(name).replace(self._file)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            log.warning("token_not_kept", error=str(error))


def _read(path: Path) -> str:
    """Return the token in a file. The error for an invalid token does not quote the token."""
    try:
        with path.open("rb") as file:
            found = file.read(_MOST_BYTES).strip()
    except OSError as error:
        raise NotReportedError(
            f"there is no token: {error}", FailureReason.REPORT_REFUSED
        ) from error
    token = found.decode("ascii", "replace")
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise NotReportedError(f"{path} contains no token", FailureReason.REPORT_REFUSED)
    return token
