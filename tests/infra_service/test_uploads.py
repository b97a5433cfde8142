"""Forms accept no files from any user, and at most 1 MiB."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from infra_service.lib.api.rendering import JsonRenderer
from tests.conftest import error_reason
from tests.support.people import person

COOKIE = "a" * 32
PATHS = ["/admin/login/", "/admin/", "/admin/logout/", "/admin/apikeys/user/add/"]


@pytest.fixture
def outsider() -> Client:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.cookies["csrftoken"] = COOKIE
    return client


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files would be."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [10, 500_000])
def test_file_of_an_anonymous_client_is_rejected(
    db: None, outsider: Client, directory: Path, path: str, size: int
) -> None:
    for form in (
        {"file": SimpleUploadedFile("x", b"x" * size)},
        {f"field{n}": "x" for n in range(900)} | {"file": SimpleUploadedFile("x", b"x")},
    ):
        answer = outsider.post(path, form)

        assert (answer.status_code, error_reason(answer)) == (400, "FILE_REFUSED")
        assert list(directory.iterdir()) == []


@pytest.mark.parametrize("content", ["multipart/form-data; boundary=b", "text/plain"])
def test_a_large_form_is_not_read(db: None, outsider: Client, content: str) -> None:
    class Unread:
        def read(self, *_: Any) -> bytes:
            raise AssertionError("it was read")

        readline = read

    length = {"wsgi.input": Unread(), "CONTENT_LENGTH": str(1024 * 1024 + 1)}
    if content == "text/plain":
        content = "application/x-www-form-urlencoded"
    answer = outsider.generic("POST", "/admin/login/", b"x", content, **length)

    assert (answer.status_code, error_reason(answer)) == (413, "REQUEST_TOO_LARGE")


def test_very_many_fields_are_rejected(db: None, outsider: Client) -> None:
    answer = outsider.post("/admin/login/", {f"field{n}": "x" for n in range(10_000)})
    assert answer.status_code == 400


def test_file_of_a_logged_in_user_is_rejected(db: None, directory: Path) -> None:
    browser = person("viewer", is_superuser=True)
    browser.raise_request_exception = False
    answer = browser.post("/admin/apikeys/user/add/", {"file": SimpleUploadedFile("x", b"x")})

    assert (answer.status_code, error_reason(answer)) == (400, "FILE_REFUSED")
    assert list(directory.iterdir()) == []


def test_renderer_rejects_unknown_types() -> None:
    with pytest.raises(TypeError, match="PosixPath has no JSON representation"):
        JsonRenderer().render({"x": Path("/secret")})
