"""System checks of views: each API view declares its access, and the admin pages are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Error, Tags, register
from django.urls import URLPattern, URLResolver, get_resolver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The admin has its own login; static files are public.
_OTHER_NAMESPACES = {"admin"}


@register(Tags.admin)
def admin_is_sound(**given: Any) -> list[CheckMessage]:
    """Report errors in the admin's pages, which most commands do not load."""
    admin.autodiscover()
    return [*check_dependencies(**given), *check_admin_app(**given)]


@register
def every_view_declares_its_access(**_kwargs: Any) -> list[CheckMessage]:
    """Report each API view without declared access."""
    return [
        Error(
            f"{pattern} ({name}) does not declare {missing}.",
            hint="Set required_scopes and token_kinds, or public = True.",
            id="infra_service.E001",
        )
        for pattern, name, missing in _undeclared(get_resolver().url_patterns, "")
    ]


def _undeclared(
    patterns: Sequence[URLPattern | URLResolver], prefix: str
) -> Iterator[tuple[str, str, str]]:
    for entry in patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if entry.namespace not in _OTHER_NAMESPACES:
                yield from _undeclared(entry.url_patterns, path)
            continue
        view = getattr(entry.callback, "cls", entry.callback)
        if getattr(view, "public", False):
            continue
        if not getattr(view, "token_kinds", None):
            yield path, view.__name__, "token_kinds"
        scopes = getattr(view, "required_scopes", {})
        for key in _entry_points(view, getattr(entry.callback, "actions", None)):
            if key not in scopes:
                yield path, view.__name__, f"the scope of {key}"


def _entry_points(view: Any, actions: dict[str, str] | None) -> list[str]:
    """Return the entry points of a view: a viewset's actions, or a view's methods."""
    if actions:
        return sorted(set(actions.values()))
    names = getattr(view, "http_method_names", ())
    return [name.upper() for name in names if name != "options" and hasattr(view, name)]
