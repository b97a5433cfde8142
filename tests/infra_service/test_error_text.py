"""Errors of the system in words."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from infra_service.lib.error_text import reason_of


def test_the_system_number_is_left_out(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(OSError, match="Errno 2") as caught:
        gone.read_bytes()

    assert reason_of(caught.value) == f"No such file or directory: '{gone}'"


def test_a_name_that_does_not_resolve() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert str(error).startswith("[Errno -2] ")

    assert reason_of(error) == "Name or service not known"


def test_a_quoted_number_is_left_out() -> None:
    error = ValueError("retries exceeded (caused by X: [Errno 111] Connection refused)")

    assert reason_of(error) == "retries exceeded (caused by X: Connection refused)"


def test_other_errors_keep_their_text() -> None:
    refused = ssl.SSLCertVerificationError(
        1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed (_ssl.c:1006)"
    )

    assert reason_of(refused) == "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"
    assert reason_of(TimeoutError("timed out")) == "timed out"
    assert reason_of(ConnectionError()) == "ConnectionError"
