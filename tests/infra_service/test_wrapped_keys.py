"""Entries of STATE_ENCRYPTION_KEYS that a key server unwraps."""

from __future__ import annotations

import base64
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from infra_service.operations import wrapped_keys
from infra_service.operations.wrapped_keys import unwrap
from tests.support.certificates import self_signed
from tests.support.postgres import free_port
from tests.support.transit import Transit, running
from tests.support.waiting import wait_until

KEY = base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
def transit() -> Iterator[Transit]:
    with running(Transit()) as server:
        yield server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts with short pauses."""
    monkeypatch.setattr(wrapped_keys, "_PAUSE", 0.05)


@pytest.fixture
def impatient(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such attempts, until a deadline of two seconds."""
    monkeypatch.setattr(wrapped_keys, "_DEADLINE", 2.0)


def settings_of(transit: Transit, **changes: str) -> wrapped_keys.Transit:
    path = f"{transit.mount}/infra-service"
    own = wrapped_keys.Transit(transit.url, transit.token, transit.namespace, path)
    return own._replace(**changes)


def test_keys_are_unwrapped_in_their_order(transit: Transit) -> None:
    old = transit.wrap(KEY)
    transit.rotate()

    assert unwrap(["plain", transit.wrap("AAAA"), old], settings_of(transit)) == [
        "plain", "AAAA", KEY,
    ]  # fmt: skip
    assert transit.requests == 2


def test_plain_keys_need_no_server() -> None:
    assert unwrap([KEY], wrapped_keys.Transit("", "", "", "")) == [KEY]


def test_mount_and_namespace() -> None:
    with running(Transit(mount="teams/infra/transit", namespace="platform")) as transit:
        assert unwrap([transit.wrap(KEY)], settings_of(transit)) == [KEY]


def test_server_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path, "localhost")
    with running(Transit(), certificate) as transit:
        monkeypatch.setattr(wrapped_keys, "_DEADLINE", 0.0)
        wrapped, settings = [transit.wrap(KEY)], settings_of(transit)
        with pytest.raises(ImproperlyConfigured, match="CERTIFICATE_VERIFY_FAILED"):
            unwrap(wrapped, settings)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        assert unwrap(wrapped, settings) == [KEY]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"token": "hvs.another"}, "responds with 403: VAULT_TOKEN has expired"),
        ({"namespace": "another"}, "responds with 403"),
        (
            {"path": "transit/another"},
            "responds with 400: the ciphertext belongs to another transit",
        ),
        ({"path": "secret/infra-service"}, "responds with 404: no transit engine"),
        ({"path": "infra-service"}, "must have the form mount/key"),
        ({"path": "transit/../sys/seal"}, "responds with 404"),
        ({"token": ""}, "VAULT_TOKEN is missing or malformed"),
        ({"token": "line\nbreak"}, "is malformed"),
        ({"url": "http://vault.example:8200"}, "must be an https URL"),
        ({"url": "http://127.0.0.1:8200@evil.example"}, "must be an https URL"),
        ({"url": ""}, "must be an https URL"),
    ],
)
def test_wrong_settings_end_the_start_at_once(
    transit: Transit, changes: dict[str, str], problem: str
) -> None:
    wrapped = transit.wrap(KEY)

    with pytest.raises(ImproperlyConfigured, match=problem) as caught:
        unwrap([KEY, wrapped], settings_of(transit, **changes))

    assert str(caught.value).startswith("STATE_ENCRYPTION_KEYS: key 2 cannot be unwrapped: ")
    assert transit.requests <= 1
    for secret in (wrapped, transit.token, KEY, "line", "hvs."):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "damaged", ["vault:", "vault:v1:", "vault:v9:AAAA", "vault:v1:!", "vault:x"]
)
def test_damaged_ciphertext_is_refused(transit: Transit, damaged: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="responds with 400"):
        unwrap([damaged], settings_of(transit))


def test_changed_ciphertext_is_refused(transit: Transit) -> None:
    payload = bytearray(base64.b64decode(transit.wrap(KEY).rpartition(":")[2]))
    payload[20] ^= 1
    changed = f"vault:v1:{base64.b64encode(payload).decode()}"

    with pytest.raises(ImproperlyConfigured, match="responds with 400"):
        unwrap([changed], settings_of(transit))


@pytest.mark.parametrize("statuses", [[503, 503], [500, 429], [412], [473]])
def test_busy_server_is_tried_again(transit: Transit, statuses: list[int], quick: None) -> None:
    transit.failures = list(statuses)

    if statuses == [473]:
        with pytest.raises(ImproperlyConfigured, match="responds with 473"):
            unwrap([transit.wrap(KEY)], settings_of(transit))
        return
    assert unwrap([transit.wrap(KEY)], settings_of(transit)) == [KEY]
    assert transit.requests == len(statuses) + 1


def test_sealed_server_is_given_up_after_the_deadline(transit: Transit, impatient: None) -> None:
    transit.failures = [503] * 1000
    with pytest.raises(ImproperlyConfigured, match="responds with 503: the server is sealed"):
        unwrap([transit.wrap(KEY)], settings_of(transit))

    assert 1 < transit.requests < 1000


def test_absent_and_silent_servers_are_given_up(impatient: None, monkeypatch: Any) -> None:
    absent = wrapped_keys.Transit(f"http://127.0.0.1:{free_port()}", "t", "", "transit/k")
    with pytest.raises(ImproperlyConfigured, match="the connection failed"):
        unwrap(["vault:v1:x"], absent)
    monkeypatch.setattr(wrapped_keys, "_ATTEMPT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ImproperlyConfigured, match="took too long"):
            unwrap(["vault:v1:x"], absent._replace(url=url))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"data": {"plaintext": 1}}', b"[" * 9000])
def test_other_response_is_refused(body: bytes) -> None:
    with pytest.raises(wrapped_keys._UnwrapError, match="not from a transit engine"):
        wrapped_keys._plaintext(body)


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run moto's KMS in a process of its own."""
    boto3 = pytest.importorskip("boto3")
    port = free_port()
    for name, value in (
        ("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{port}"), ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "s3cr3t"), ("AWS_DEFAULT_REGION", "eu-central-1"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or _listens(port))
            yield boto3.client("kms")
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_aws_kms(kms: Any) -> None:
    key_id = kms.create_key()["KeyMetadata"]["KeyId"]
    blob = kms.encrypt(KeyId=key_id, Plaintext=base64.b64decode(KEY))["CiphertextBlob"]
    wrapped = f"aws-kms:{base64.b64encode(blob).decode()}"
    nowhere = wrapped_keys.Transit("", "", "", "")

    assert unwrap([wrapped], nowhere) == [KEY]
    kms.disable_key(KeyId=key_id)
    for entry, problem in (
        ("aws-kms:%", "AWS KMS: Error"),
        (f"aws-kms:{base64.b64encode(blob[:-1] + b'x').decode()}", "AWS KMS responds with"),
    ):
        with pytest.raises(ImproperlyConfigured, match=problem) as caught:
            unwrap([entry], nowhere)
        assert entry not in str(caught.value)


def test_aws_kms_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(ImproperlyConfigured, match=r"infra-service\[s3\]"):
        unwrap(["aws-kms:AAAA"], wrapped_keys.Transit("", "", "", ""))
