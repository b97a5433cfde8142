"""Size and time limits for a provider's responses, because ``requests`` has no such limits."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any, Final

from requests import ConnectionError as RequestsConnectionError
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

#: The maximum size of a body. Discovery documents and key sets have 10 KB.
MAX_BYTES: Final = 256 * 1024
#: Seconds for a body, from the first to the last byte.
SECONDS: Final = 5.0
_PIECE: Final = 64 * 1024


class BoundedAdapter(HTTPAdapter):
    """An adapter that reads whole responses, and rejects long, slow and compressed responses."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Send the request.

        Raises:
            requests.ConnectionError: no response arrived within the limits.
        """
        request.headers["Accept-Encoding"] = "identity"  # a small body can unpack to gigabytes
        return super().send(request, *args, **options)

    def build_response(self, req: PreparedRequest, resp: Any) -> Response:
        """Return the response with its body read."""
        try:
            body = _read(resp)
        except HTTPError as error:
            raise RequestsConnectionError(str(error), request=req) from error
        finally:
            resp.close()
        read = HTTPResponse(
            io.BytesIO(body), resp.headers, resp.status, reason=resp.reason, preload_content=False
        )
        return super().build_response(req, read)


def _read(answer: Any) -> bytes:
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise HTTPError("the response is compressed")
    body, deadline = bytearray(), time.monotonic() + SECONDS
    while piece := answer.read1(_PIECE, decode_content=False):
        body += piece
        if len(body) > MAX_BYTES:
            raise HTTPError(f"the response is longer than {MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise HTTPError(f"the response takes longer than {SECONDS:g} seconds")
    return bytes(body)
