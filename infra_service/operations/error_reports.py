from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.views.debug import SafeExceptionReporterFilter

from infra_service.logs import redact

if TYPE_CHECKING:
    from types import FrameType

    from django.http import HttpRequest


class TokenlessReportFilter(SafeExceptionReporterFilter):
    """A filter that redacts tokens in Django's error reports, which show variables and headers."""

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> Any:
        """Return the names of a frame's variables, and their values as text without tokens."""
        variables = super().get_traceback_frame_variables(request, tb_frame)
        return [(name, redact(repr(value))) for name, value in variables]

    def get_safe_request_meta(self, request: HttpRequest) -> dict[str, Any]:
        """Return the request's headers and environment."""
        meta = super().get_safe_request_meta(request)
        return {k: redact(v) if isinstance(v, str) else v for k, v in meta.items()}
