"""Unwrap entries of ``STATE_ENCRYPTION_KEYS`` when the process starts.

``vault:v1:…`` is a ciphertext of the transit engine of Vault or OpenBao, whose ``decrypt`` returns
the key in base64 (https://openbao.org/api-docs/secret/transit/). ``aws-kms:BASE64`` is a ciphertext
of AWS KMS. All other entries are plain keys. Error messages contain no keys, ciphertexts, tokens or
responses.
"""

from __future__ import annotations

import base64
import json
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from infra_service.lib.http_client.connection import Response

_TRANSIT: Final = "vault:"
_AWS_KMS: Final = "aws-kms:"
#: The time limits for the start and for an attempt, and the pause between attempts, in seconds.
_DEADLINE: Final = 30.0
_ATTEMPT: Final = 5.0
_PAUSE: Final = 2.0
_MOST_BYTES: Final = 64 * 1024
# The path of a key: the mount of the engine, which may have several parts, and the key's name.
_PATH: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)+", re.ASCII)
_HEADER: Final = re.compile(r"[!-~]+", re.ASCII)
_RETRIED: Final = frozenset({HTTPStatus.PRECONDITION_FAILED, HTTPStatus.TOO_MANY_REQUESTS})
_MEANINGS: Final[dict[int, str]] = {
    HTTPStatus.BAD_REQUEST: "the ciphertext belongs to another transit key, or the key is missing",
    HTTPStatus.FORBIDDEN: "VAULT_TOKEN has expired, or has no permission to update this path",
    HTTPStatus.NOT_FOUND: "no transit engine is mounted at this path",
    HTTPStatus.SERVICE_UNAVAILABLE: "the server is sealed, or in maintenance",
}


class Transit(NamedTuple):
    """The address of the server, the token and namespace, and the path ``mount/key``."""

    url: str
    token: str
    namespace: str
    path: str


def unwrap(entries: list[str], transit: Transit) -> list[str]:
    """Return the keys in base64, in the same order.

    Raises:
        ImproperlyConfigured: an entry cannot be unwrapped within 30 seconds.
    """
    deadline = time.monotonic() + _DEADLINE
    keys = []
    for position, entry in enumerate(entries, 1):
        try:
            if entry.startswith(_TRANSIT):
                keys.append(_by_transit(entry, transit, deadline))
            elif entry.startswith(_AWS_KMS):
                keys.append(_by_aws_kms(entry.removeprefix(_AWS_KMS)))
            else:
                keys.append(entry)
        except _UnwrapError as error:
            raise ImproperlyConfigured(
                f"STATE_ENCRYPTION_KEYS: key {position} cannot be unwrapped: {error}"
            ) from None
    return keys


class _UnwrapError(Exception):
    """A key that cannot be unwrapped. The message states the reason."""


def _by_transit(ciphertext: str, transit: Transit, deadline: float) -> str:
    # Imported here, because most processes have no wrapped key.
    from infra_service.lib.http_client.addresses import is_protected  # noqa: PLC0415
    from infra_service.lib.http_client.errors import FetchError  # noqa: PLC0415

    if not is_protected(transit.url):
        raise _UnwrapError("VAULT_ADDR must be an https URL, or http on this machine")
    # http.client would quote a malformed header in its error.
    if not _HEADER.fullmatch(transit.token) or not _HEADER.fullmatch(transit.namespace or "-"):
        raise _UnwrapError("VAULT_TOKEN is missing or malformed, or VAULT_NAMESPACE is malformed")
    if not _PATH.fullmatch(transit.path):
        raise _UnwrapError("VAULT_TRANSIT_KEY must have the form mount/key")
    while True:
        try:
            response = _decrypt(ciphertext, transit)
            if response.is_success:
                return _plaintext(response.body)
            problem = f"{transit.url} responds with {response.status}"
            if meaning := _MEANINGS.get(response.status):
                problem += f": {meaning}"
            is_final = response.status < HTTPStatus.INTERNAL_SERVER_ERROR
            if is_final and response.status not in _RETRIED:
                raise _UnwrapError(problem)
        except FetchError as error:
            problem = f"{transit.url}: {error}"
        if time.monotonic() + _PAUSE > deadline:
            raise _UnwrapError(problem)
        time.sleep(_PAUSE)


def _decrypt(ciphertext: str, transit: Transit) -> Response:
    from infra_service.lib.http_client.connection import Connection  # noqa: PLC0415 - see above
    from infra_service.lib.http_client.deadline import Deadline  # noqa: PLC0415

    mount, _, key = transit.path.rpartition("/")
    url = f"{transit.url.rstrip('/')}/v1/{mount}/decrypt/{key}"
    headers = {
        "Content-Type": "application/json",
        "X-Vault-Request": "true",
        "X-Vault-Token": transit.token,
        **({"X-Vault-Namespace": transit.namespace} if transit.namespace else {}),
    }
    body = json.dumps({"ciphertext": ciphertext}).encode()
    return Connection(url).exchange(
        "POST", url, headers, body, deadline=Deadline(_ATTEMPT), limit=_MOST_BYTES
    )


def _plaintext(body: bytes) -> str:
    try:
        plaintext = json.loads(body)["data"]["plaintext"]
    except (ValueError, KeyError, TypeError, RecursionError):
        plaintext = None
    if not isinstance(plaintext, str):
        raise _UnwrapError("the response is not from a transit engine")
    return plaintext


def _by_aws_kms(ciphertext: str) -> str:
    """Return the key. The region and credentials come from boto3's default sources."""
    try:
        import boto3  # noqa: PLC0415 - of an extra
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError:
        raise _UnwrapError("AWS KMS needs the extra: pip install 'infra-service[s3]'") from None
    retries: Any = {"mode": "standard", "total_max_attempts": 4}
    config = Config(connect_timeout=3, read_timeout=_ATTEMPT, retries=retries)
    try:
        blob = base64.b64decode(ciphertext, validate=True)
        response = boto3.client("kms", config=config).decrypt(CiphertextBlob=blob)
    except ClientError as error:
        raise _UnwrapError(f"AWS KMS responds with {error.response['Error']['Code']}") from None
    except (BotoCoreError, ValueError) as error:
        raise _UnwrapError(f"AWS KMS: {type(error).__name__}") from None
    return base64.b64encode(response["Plaintext"]).decode()
