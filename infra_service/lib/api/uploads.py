"""Reject uploaded files, because no form of this service accepts files."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler


class FileRefused(SuspiciousOperation):
    """A form that contains a file."""


class RefusingUploadHandler(FileUploadHandler):
    """An upload handler that rejects files without reading them.

    ``BodyLengthMiddleware`` limits the size of the form, which Django limits only without its
    files.
    """

    def new_file(self, *_args: Any, **_named: Any) -> None:
        """Reject a file.

        Raises:
            FileRefused: always.
        """
        raise FileRefused("Forms do not accept files.")
