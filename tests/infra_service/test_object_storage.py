"""STATE_STORAGE_URL."""

import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages

from infra_service.operations.object_storage import s3_storage


def options(url: str) -> dict[str, Any]:
    entry = s3_storage(url)
    assert entry["BACKEND"] == "storages.backends.s3.S3Storage"
    found: dict[str, Any] = entry["OPTIONS"]
    return found


def test_url_accepts_all_options() -> None:
    found = options(
        "s3://key:se%2Fcret@states/prod/eu"
        "?endpoint_url=https://minio.example:9000&region_name=eu-west-1&addressing_style=path&read_timeout=5"
    )

    config, transfer = found.pop("client_config"), found.pop("transfer_config")
    assert found == {
        "access_key": "key",
        "secret_key": "se/cret",
        "bucket_name": "states",
        "location": "prod/eu",
        "endpoint_url": "https://minio.example:9000",
        "region_name": "eu-west-1",
        "file_overwrite": True,
        "default_acl": None,
    }
    assert config.s3 == {"addressing_style": "path"}
    assert (config.connect_timeout, config.read_timeout) == (3, 5)
    assert transfer.multipart_threshold > settings.STATE_MAX_BYTES


def test_a_bucket_is_enough() -> None:
    found = options("s3://states")

    assert (found["bucket_name"], found["location"]) == ("states", "")
    assert "access_key" not in found


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("states", "must have the form s3://"),
        ("https://key:hunter2@states/", "must have the form s3://"),
        ("s3://", "must have the form s3://"),
        ("s3://bucket#part", "must have the form s3://"),
        ("s3://bucket?read_timeout=1.5", "must be whole seconds"),
        ("s3://key:hunter2@bucket?endpoint=x", "unknown option endpoint; known options are"),
    ],
)
def test_invalid_addresses_are_refused(url: str, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=problem) as caught:
        s3_storage(url)

    assert "hunter2" not in str(caught.value)


def test_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.config", None)

    with pytest.raises(ImproperlyConfigured, match=r"infra-service\[s3\]"):
        s3_storage("s3://states")


def test_django_storages_takes_it(settings: Any) -> None:
    settings.STORAGES = {**settings.STORAGES, "states": s3_storage("s3://states/prefix")}

    assert storages["states"].bucket_name == "states"  # type: ignore[attr-defined]
