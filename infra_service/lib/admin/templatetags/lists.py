"""Template filters for lists: labelled cells, links that change the order, optional columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django import template
from django.contrib.admin.utils import label_for_field
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

register = template.Library()

# Django's display of an empty value, which cards omit.
_ABSENT: Final = re.compile(r">(?:–|&ndash;)</t[dh]>$")  # noqa: RUF001 - a dash
_CELL: Final = re.compile(r"<(td|th)\b")


@register.filter
def labelled(cells: Iterable[str], headers: list[dict[str, Any]]) -> Iterator[SafeString]:
    """Add the column's name to each cell of a row, for display on a small screen."""
    for cell, header in zip(cells, headers, strict=True):
        tag = _CELL.match(cell)
        text = "" if "action-checkbox" in header["class_attrib"] else str(header["text"])
        label = format_html(' data-label="{}"', text[:1].upper() + text[1:])
        if _ABSENT.search(cell):
            label = format_html("{} data-absent", label)
        yield mark_safe(cell if tag is None else f"{tag[0]}{label}{cell[tag.end() :]}")  # noqa: S308 - Django's own cell


@register.filter
def with_orders(headers: list[dict[str, Any]], cl: Any) -> Iterator[dict[str, Any]]:
    """Yield the headers of a ``KeysetChangeList``, with ``order`` for sortable columns."""
    for name, header in zip(cl.list_display, headers, strict=True):
        yield {**header, "order": cl.order_link(str(name))}


@register.filter
def optional_columns(cl: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and labels of the columns that can be hidden: all but the first."""
    names = [name for name in cl.list_display if name != "action_checkbox"]
    for name in names[1:]:
        label = str(label_for_field(name, cl.model, cl.model_admin))
        yield name, label[:1].upper() + label[1:]
