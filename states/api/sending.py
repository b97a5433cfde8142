"""Responses with documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers
from rest_framework.views import APIView

from infra_service.lib.api import memory
from states import metrics
from states.document import sealing

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


#: The name of a document with outputs only, in URLs and in the audit log.
OUTPUTS_DOCUMENT: Final = "outputs.tfstate"


class DocumentAPIView(APIView):
    """A view with responses that can be many megabytes in size."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Handle the request, and free the document afterwards.

        DRF's view, request and response refer to each other. A document of several megabytes would
        otherwise stay in memory until the garbage collector runs.
        """
        response = super().dispatch(request, *args, **kwargs)
        del self.response
        return response


def document_response(request: Request | HttpRequest, gzipped: bytes) -> HttpResponse:
    """Return a response with the document as it was pushed, with gzip if the client accepts it."""
    headers = {"Cache-Control": "no-store"}
    if _accepts_gzip(request):
        headers["Content-Encoding"] = "gzip"
        response = HttpResponse(gzipped, "application/json", headers=headers)
    else:
        memory.reserve(sealing.size_of(gzipped))
        content = sealing.decompress(gzipped)
        response = HttpResponse(content, "application/json", headers=headers)
    if request.method != "HEAD":
        metrics.PULLED_BYTES.inc(len(response.content))
    patch_vary_headers(response, ("Accept-Encoding",))
    return response


def _accepts_gzip(request: Request | HttpRequest) -> bool:
    """Return whether the client accepts gzip (RFC 9110 §12.5.3)."""
    for entry in request.META.get("HTTP_ACCEPT_ENCODING", "").lower().split(","):
        coding, _, weight = entry.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return weight.strip("0.") != "" or not weight
    return False
