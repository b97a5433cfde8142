"""Formats of dates and times on pages."""

import datetime as dt

import pytest
from django.utils import timezone

from infra_service.lib.admin.templatetags.moments import relative


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (dt.timedelta(seconds=20), "just now"),
        (dt.timedelta(seconds=-20), "just now"),
        (dt.timedelta(hours=3, minutes=20), "3\xa0hours ago"),
        (dt.timedelta(days=-2, hours=-1), "in 2\xa0days"),
    ],
)
def test_relative_times_are_readable(ago: dt.timedelta, text: str) -> None:
    moment = timezone.now() - ago

    exact = moment.astimezone(dt.UTC)
    assert relative(moment.astimezone(dt.timezone(dt.timedelta(hours=5)))) == (
        f'<time datetime="{exact.isoformat()}" title="{exact:%Y-%m-%d %H:%M:%S} UTC">{text}</time>'
    )
