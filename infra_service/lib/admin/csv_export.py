"""CSV export of a filtered list, with the columns of its page."""

from __future__ import annotations

import csv
import datetime as dt
import html
import io
import re
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import label_for_field, lookup_field
from django.http import HttpResponse
from django.utils.html import strip_tags

from infra_service.lib.database.bounded_pages.segments import read_segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from infra_service.lib.admin.change_list import KeysetChangeList

#: The maximum number of rows in a file, and the batch size.
MOST_ROWS: Final = 10_000
_AT_ONCE: Final = 500
#: The maximum number of pages to read. Some pages may be short.
_MOST_PAGES: Final = 40
_INCOMPLETE: Final = "This file is incomplete, because the list is too long. Use more filters."
#: A relative time on a page. The CSV has the exact time.
_MOMENT: Final = re.compile('<time datetime="([^"]*)"[^>]*>[^<]*</time>')
#: The first characters of a formula, some of them full-width.
_SIGN: Final = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"
#: The start of a field that a spreadsheet may recognize as a formula.
_START: Final = re.compile(rf"\s*+{_SIGN}|[\t\r\n]")
#: White space before a sign within a field. It is matched as a whole, in linear time.
_BEFORE_SIGN: Final = re.compile(rf"(?:;|(?<!\s)\s)\s*+(?={_SIGN})")
#: Characters that start a cell or a row under other settings.
_SEPARATOR: Final = re.compile(r"[;\t\r\n]")


def csv_of(request: HttpRequest, cl: KeysetChangeList) -> HttpResponse:
    """Return the first rows of the list as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    admin = cl.model_admin
    listed = [name for name in cl.list_display if name != "action_checkbox"]
    columns = [*listed, *admin.csv_columns]
    writer.writerow([_inert(str(label_for_field(name, cl.model, admin))) for name in columns])
    left = MOST_ROWS
    position: Sequence[int | str] | None = None
    for _ in range(_MOST_PAGES):
        rows, _, position = read_segments(
            cl.queryset, segments=cl.segments, position=position, size=min(_AT_ONCE, left)
        )
        admin.prepare_page(request, rows)
        writer.writerows([_text(name, row, admin) for name in columns] for row in rows)
        left -= len(rows)
        if position is None or not left:
            break
    if position is not None:
        writer.writerow([_INCOMPLETE])
    response = HttpResponse(file.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{cl.opts.model_name}s.csv"'
    return response


def _text(name: Any, row: Any, admin: Any) -> str:
    _field, _attribute, value = lookup_field(name, row, admin)
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    text = str(value)
    if hasattr(value, "__html__"):
        text = _MOMENT.sub(r"\1", text)
        text = html.unescape(strip_tags(text.replace("><", "> <"))).strip()
    return _inert(text)


def _inert(text: str) -> str:
    """Return the text with an apostrophe before each part that could be a formula."""
    inert = _BEFORE_SIGN.sub(lambda found: _SEPARATOR.sub(r"\g<0>'", found[0]), text)
    return f"'{inert}" if _START.match(text) else inert
