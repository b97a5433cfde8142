"""Conversion of ``STATE_STORAGE_URL`` to the options of django-storages."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

#: The maximum size of an object that S3 accepts in a single request. Documents are far smaller. If
#: an upload in parts were interrupted, its parts would stay in the bucket, and no list of objects
#: contains them.
_LARGEST_PUT: Final = 5 * 2**30
_OPTIONS: Final = frozenset({"endpoint_url", "region_name", "addressing_style", "read_timeout"})


def s3_storage(url: str) -> dict[str, Any]:
    """Return the entry of ``STORAGES`` for ``s3://[key:secret@]bucket[/prefix][?option=…]``.

    Without a key in the URL, boto3 uses its default sources: the environment, a profile or the
    machine's role. Timeouts are short, because a client waits.

    Raises:
        ImproperlyConfigured: the URL is invalid, or the extra is not installed. The URL can contain
            a secret, so the error message quotes only the name of an unknown option.
    """
    try:
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - of an extra
        from botocore.config import Config  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise ImproperlyConfigured(
            "STATE_STORAGE_URL needs the extra: pip install 'infra-service[s3]'"
        ) from error
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme != "s3" or not parts.hostname or parts.fragment:
        raise ImproperlyConfigured(
            "STATE_STORAGE_URL must have the form s3://bucket[/prefix][?option=value]"
        )
    if unknown := options.keys() - _OPTIONS:
        raise ImproperlyConfigured(
            f"STATE_STORAGE_URL: unknown option {min(unknown)}; "
            f"known options are {', '.join(sorted(_OPTIONS))}"
        )
    style = options.pop("addressing_style", "auto")
    timeout = options.pop("read_timeout", "15")
    if not timeout.isdecimal():
        raise ImproperlyConfigured("STATE_STORAGE_URL: read_timeout must be whole seconds")
    credentials = {}
    if parts.username and parts.password:
        credentials = {
            "access_key": unquote(parts.username),
            "secret_key": unquote(parts.password),
        }
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            **options,
            **credentials,
            "bucket_name": parts.hostname,
            "location": parts.path.strip("/"),
            # Names are never reused, so no lookup is needed before a write.
            "file_overwrite": True,
            "default_acl": None,
            "transfer_config": TransferConfig(multipart_threshold=_LARGEST_PUT),
            "client_config": Config(
                signature_version="s3v4",
                s3={"addressing_style": style},
                connect_timeout=3,
                read_timeout=int(timeout),
                retries={"mode": "standard", "total_max_attempts": 2},
                # Some S3-compatible stores reject the newer checksums, and documents have their own
                # authenticated checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        },
    }
