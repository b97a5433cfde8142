"""Django's WSGI handler, restricted to UTF-8.

Django, DRF and Python's ``email`` look up every codec that a client names in the charset of a
Content-Type, or in an extended parameter (RFC 2231) of a header. Some codecs raise unexpected
exceptions, and Python caches every name permanently.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any, Final

from django.core.exceptions import BadRequest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.utils.functional import cached_property
from django.utils.http import parse_header_parameters

#: The key in the environment of a request with an encoding other than UTF-8. The value is the
#: charset, or "" for an encoded parameter of a header.
OTHER_ENCODING: Final = "infra_service.other_encoding"
# The headers with parsed parameters.
_PARSED: Final = ("CONTENT_TYPE", "HTTP_ACCEPT", "HTTP_CONTENT_DISPOSITION")
#: Bytes of cookies. The admin's cookies have less than a kilobyte.
_MOST_COOKIES: Final = 16_384
_CHARSETS: Final = {"utf-8", "utf8", "us-ascii", "ascii"}
# ``name*=``, with any characters between ``*`` and ``=`` that a parser may treat as white space.
# Another ``*`` ends the match: it begins a match itself, and many would take quadratic time.
_EXTENDED: Final = re.compile(r"\*[^;=\w*]*=")
_EXTENDED_IN_PART: Final = re.compile(rb"^[\w-]+:.*\*[^;=\w\n*]*=", re.MULTILINE)


class ServiceRequest(WSGIRequest):
    """A request that never looks up a codec that the client names."""

    def __init__(self, environ: dict[str, Any]) -> None:
        if (encoding := _named_encoding(environ)) is not None:
            environ[OTHER_ENCODING] = encoding
            for header in _PARSED:
                environ.pop(header, None)
        super().__init__(environ)

    @cached_property
    def COOKIES(self) -> dict[str, str]:  # type: ignore[override]  # noqa: N802 - Django's
        """Return the cookies whose values contain no NUL, which PostgreSQL cannot store.

        Ignore more than 16 KB of cookies. Python before 3.11.10 needs quadratic time for quoted
        values (CVE-2024-7592).
        """
        if len(self.environ.get("HTTP_COOKIE", "")) > _MOST_COOKIES:
            return {}
        cookies: dict[str, str] = super().COOKIES
        return {name: value for name, value in cookies.items() if "\0" not in value}

    def parse_file_upload(self, META: Any, post_data: Any) -> Any:  # noqa: ARG002, N803 - Django's
        """Parse a multipart form.

        Raises:
            BadRequest: a part of the form names an encoding.
        """
        if _EXTENDED_IN_PART.search(self.body):
            raise BadRequest("multipart")
        return super().parse_file_upload(META, BytesIO(self.body))


class ServiceHandler(WSGIHandler):
    request_class = ServiceRequest


def _named_encoding(environ: dict[str, Any]) -> str | None:
    """Return a charset other than UTF-8, "" for an encoded parameter, or None for UTF-8 only."""
    if any(_EXTENDED.search(environ.get(header, "")) for header in _PARSED):
        return ""
    _, parameters = parse_header_parameters(environ.get("CONTENT_TYPE", ""))
    charset: str = parameters.get("charset", "utf-8")
    return None if charset.lower() in _CHARSETS else charset
