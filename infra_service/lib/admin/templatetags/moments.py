"""Format relative times, such as "3 hours ago", with the exact time on hover."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince, timeuntil

register = template.Library()

_MINUTE: Final = dt.timedelta(minutes=1)


@register.filter
def relative(moment: dt.datetime) -> str:
    """Format a time relative to now, in the past or the future."""
    now = timezone.now()
    if abs(moment - now) < _MINUTE:
        text = "just now"
    elif moment < now:
        text = f"{timesince(moment, now, depth=1)} ago"
    else:
        text = f"in {timeuntil(moment, now, depth=1)}"
    exact = moment.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(),
        f"{exact:%Y-%m-%d %H:%M:%S}",
        text,
    )
