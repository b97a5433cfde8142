"""Status badges of admin pages."""

from __future__ import annotations

from django.utils.html import format_html


def badge(sign: str, word: object) -> str:
    """Return a word with an icon: ``ok``, ``warning``, ``error``, ``lost`` or ``idle``."""
    return format_html('<span class="status status-{}">{}</span>', sign, word)
