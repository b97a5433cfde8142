"""A template filter that allows line breaks within long words."""

from __future__ import annotations

import re
from typing import Final

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

register = template.Library()

_BREAK: Final = mark_safe("<wbr>")
# Breaks after separators in addresses, and between the words of names such as CrashLoopBackOff.
_PLACES: Final = re.compile(r"(?<=[/.:=_\]])(?=\w)|(?<=[a-z])(?=[A-Z])")


@register.filter
def breakable(text: object) -> str:
    """Allow line breaks between the parts of a long word."""
    return format_html_join(_BREAK, "{}", ((part,) for part in _PLACES.split(str(text))))
