"""Reject uploaded files, because no form of this service accepts files."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler


class FileRefused(SuspiciousOperation):
    """A form that contains a file."""


class RefusingUploadHandler(FileUploadHandler):
    """An upload handler that rejects files without reading them, and large forms.

    Django limits the fields of a multipart form, but not its files.
    """

    def handle_raw_input(
        self,
        input_data: Any,  # noqa: ARG002
        META: Any,  # noqa: ARG002, N803
        content_length: int,
        boundary: Any,  # noqa: ARG002
        encoding: Any = None,  # noqa: ARG002
    ) -> None:
        """Check the size of the form.

        Raises:
            RequestDataTooBig: the form exceeds the limit.
        """
        if content_length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig("The form is too large.")

    def new_file(self, *_args: Any, **_named: Any) -> None:
        """Reject a file.

        Raises:
            FileRefused: always.
        """
        raise FileRefused("Forms do not accept files.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Do nothing: there is no file."""

    def file_complete(self, file_size: int) -> None:
        """Do nothing: there is no file."""
