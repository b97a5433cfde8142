from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema


class ApiSchema(AutoSchema):  # type: ignore[misc,unused-ignore]
    """Describes lists under the name that the view gives them."""

    def _get_paginator(self) -> Any:
        paginator = super()._get_paginator()  # type: ignore[no-untyped-call]
        if paginator is not None:
            paginator.view = self.view
        return paginator
