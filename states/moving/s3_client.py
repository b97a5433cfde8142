"""The S3 client of imports. boto3 reads keys, profile, region and endpoint from its settings."""

from __future__ import annotations

import os
import re
from typing import Any, Final

from states.moving.sources import SourceError
from states.moving.web import require_https

SCHEME: Final = "s3://"
_BUCKET: Final = re.compile(r"[\w.-]+")


def located(text: str) -> tuple[Any, str, str]:
    """Return a client, and the bucket and the folder of ``s3://bucket/prefix``.

    Raises:
        SourceError: the address does not have this form, or boto3 is missing or misconfigured.
    """
    bucket, _, folder = text.removeprefix(SCHEME).partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise SourceError(
            "The address must have the form s3://bucket/prefix. Set the credentials and the "
            "endpoint with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE and "
            "AWS_ENDPOINT_URL."
        )
    return _client(), bucket, folder


def _client() -> Any:
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    except ImportError as error:
        raise SourceError(
            "boto3 is not installed: .venv/bin/pip install --require-hashes -r requirements-s3.txt"
        ) from error
    # Buckets at private endpoints rarely have host names, so their names are part of the path.
    custom_endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    config = Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard"},
        s3={"addressing_style": "path"} if custom_endpoint else None,
        # S3-compatible stores may not support the newer checksums of S3.
        response_checksum_validation="when_required",
    )
    try:
        client = boto3.session.Session().client("s3", config=config)
    except (BotoCoreError, ValueError) as error:
        raise SourceError(f"boto3 cannot create a client: {error}.") from error
    require_https(client.meta.endpoint_url, "AWS_ENDPOINT_URL")
    return client
