"""Middleware of every request: ids, access log, size of the body, errors instead of redirects."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.core.exceptions import BadRequest, DisallowedHost
from django.db import connection
from django.urls import Resolver404, resolve

from infra_service.lib.api import throttling
from infra_service.lib.api.bodies import BodyTooLarge, LengthRequired
from infra_service.lib.api.client_address import settle_client
from infra_service.lib.api.handlers import bad_request, insecure_transport, refused
from infra_service.lib.api.parameters import encoding_fault
from infra_service.lib.api.parsers import UnsupportedCharset
from infra_service.lib.database import replica
from infra_service.lib.server.handler import OTHER_ENCODING
from infra_service.lib.uuids import uuid7
from infra_service.operations import access_log, tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from rest_framework.exceptions import APIException

log = structlog.get_logger("infra_service.requests")

_WELL_FORMED_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Version, trace id, parent id and flags (https://www.w3.org/TR/trace-context/). Version ff and ids
# of zeros are invalid. Version 00 has exactly 55 characters. A later version may continue after a
# hyphen.
_TRACEPARENT: Final = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
_PAGES: Final = ("/admin/", "/docs/")
_PAGE: Final = re.compile(r"/|/api/docs/?")
# Only the service's own files: no inline scripts or styles, nothing from other hosts.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# Overrides, embeddings and isolates of the Unicode Bidirectional Algorithm, U+202A to U+202E and
# U+2066 to U+2069, and characters without width: U+00AD, U+200B, U+2060 to U+2064 and U+FEFF. In
# UTF-8.
_DECEPTIVE: Final = re.compile(
    rb"\xe2\x80[\x8b\xaa-\xae]|\xe2\x81[\xa0-\xa4\xa6-\xa9]|\xc2\xad|\xef\xbb\xbf"
)
_PROBE: Final = re.compile(r"/(healthz|readyz|metrics)/?")


class RequestContextMiddleware:
    """Middleware that assigns a request id and writes an access event.

    Values that are bound to the log context during the request, such as a state's id, appear in all
    later lines.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.exempt_from_redirect = [re.compile(p) for p in settings.SECURE_REDIRECT_EXEMPT]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        request_id = uuid7().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        ids = {"request_id": request_id}
        # Not request.headers, which would convert all headers of the request.
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        if _WELL_FORMED_ID.fullmatch(given):
            # In addition to the service's id, because clients can reuse an id.
            request.client_request_id = ids["client_request_id"] = given  # type: ignore[attr-defined]
        traceparent = request.META.get("HTTP_TRACEPARENT", "")
        trace_id = request.META.get(tracing.TRACE_ID) or trace_id_of(traceparent)
        request.trace_id = trace_id  # type: ignore[attr-defined]
        if trace_id:
            ids["trace_id"] = trace_id
        settle_client(request.META)
        queries = access_log.Queries()
        replica.begin()
        structlog.contextvars.bind_contextvars(**ids)
        try:
            with connection.execute_wrapper(queries):
                response = self._refusal(request) or self.get_response(request)
            response["X-Request-ID"] = request_id
            replica.set_age_header(response)
            throttling.add_headers(request, response)
            if not response.streaming:
                response.setdefault("Content-Length", str(len(response.content)))
                if request.method == "HEAD":
                    response.content = b""  # the headers are the same as for GET
            access_log.record(request, response, time.perf_counter() - started, queries)
        finally:
            structlog.contextvars.clear_contextvars()
        return response

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Reject requests that Django would redirect or answer with an HTML error, and other hosts.

        Probes are exempt, because they use an IP address and plain HTTP.
        """
        if _PROBE.fullmatch(request.path):
            return None
        try:
            request.get_host()
        except DisallowedHost as error:
            return bad_request(request, error)
        if (encoding := request.META.get(OTHER_ENCODING)) is not None:
            refusal = UnsupportedCharset(encoding) if encoding else BadRequest(OTHER_ENCODING)
            return bad_request(request, refusal)
        if (fault := encoding_fault(request)) is not None:
            return bad_request(request, fault)
        is_insecure = settings.SECURE_SSL_REDIRECT and not request.is_secure()
        path = request.path.lstrip("/")
        if is_insecure and any(exempt.search(path) for exempt in self.exempt_from_redirect):
            return insecure_transport(request)
        return None


def trace_id_of(traceparent: str) -> str:
    """Return the 32 hexadecimal digits of the trace id, or "" if the header is malformed."""
    match = _TRACEPARENT.fullmatch(traceparent)
    return match[1] if match else ""


class BodyLengthMiddleware:
    """Middleware that rejects chunked bodies, and bodies over 1 MiB, before they are read.

    Most views never read the body, but the server would still have to receive it. The middleware
    skips the methods in ``reads_bodies_of`` of a view, which apply the view's own limit.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        fault = _length_fault(request)
        if fault is not None and request.method not in _read_by_view(request):
            return refused(request, fault)
        return self.get_response(request)


def _length_fault(request: HttpRequest) -> APIException | None:
    if "HTTP_TRANSFER_ENCODING" in request.META:
        return LengthRequired()
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
        return BodyTooLarge(limit)
    return None


def _read_by_view(request: HttpRequest) -> frozenset[str]:
    try:
        view = resolve(request.path_info).func
    except Resolver404:
        return frozenset()
    methods: frozenset[str] = getattr(getattr(view, "cls", None), "reads_bodies_of", frozenset())
    return methods


class PagePolicyMiddleware:
    """Middleware that protects the service's pages from malicious content.

    Browsers run only the service's own files. The middleware escapes characters that reorder text
    or have no width, because they can make a name or a value look like another (CVE-2021-42574).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(_PAGES) or _PAGE.fullmatch(request.path):
            response["Content-Security-Policy"] = _POLICY
            is_page = response.get("Content-Type", "").startswith("text/html")
            if is_page and not response.streaming:
                response.content = _DECEPTIVE.sub(_escaped, response.content)
        return response


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())
