"""Columns for timestamps: relative, such as "3 hours ago", with the exact time on hover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from infra_service.lib.admin.templatetags.moments import relative

if TYPE_CHECKING:
    from collections.abc import Callable


def moment_of(
    column: str, description: str, *, absent: str | None = None
) -> Callable[[Any, Any], str]:
    """Return an admin display of the timestamp column, with ``absent`` in place of null."""

    @admin.display(description=description)
    def shown(model_admin: Any, obj: Any) -> str:
        moment = getattr(obj, column)
        if moment is not None:
            return relative(moment)
        return str(model_admin.get_empty_value_display()) if absent is None else absent

    return shown
