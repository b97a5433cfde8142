"""The parameter ``order_by`` of lists: indexed orders, each in both directions.

The default order is the view's ``page_key``. ``other_keys`` are alternatives, named after their
first column. ``order_names`` maps a column to another name. Orders without an index are not
supported, because each page would sort up to a million rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.database.keyset import columns_of, reversed_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import QueryDict

PARAMETER: Final = "order_by"


def keys_of(view: Any) -> list[Sequence[str]]:
    """Return the keys by which the list can be ordered, with the default first."""
    return [view.page_key, *getattr(view, "other_keys", ())]


def orders_of(view: Any) -> dict[str, Sequence[str]]:
    """Return the key for each value of the parameter."""
    orders: dict[str, Sequence[str]] = {}
    names = getattr(view, "order_names", {})
    for key in keys_of(view):
        (column, *_), descending = columns_of(key)
        name = names.get(column, column)
        orders[name] = reversed_key(key) if descending else key
        orders[f"{name} desc"] = key if descending else reversed_key(key)
    return orders


def requested_key(parameters: QueryDict, view: Any) -> Sequence[str]:
    """Return the key of the requested order, or the default key of the list.

    Raises:
        InvalidParameter: the list does not support the order.
    """
    requested = parameters.get(PARAMETER)
    if not requested:
        own: Sequence[str] = view.page_key
        return own
    orders = orders_of(view)
    if requested not in orders:
        known = ", ".join(f"'{order}'" for order in orders)
        raise InvalidParameter(
            PARAMETER,
            f"The list cannot be sorted in this order. The supported orders are {known}.",
            "UNKNOWN_VALUE",
        )
    return orders[requested]


def described(view: Any) -> dict[str, Any]:
    """Return the OpenAPI description of the parameter."""
    (own,) = (order for order, key in orders_of(view).items() if list(key) == list(view.page_key))
    text = f"The order of the items. The default is `{own}`."
    if moving := getattr(view, "moving_orders", ()):
        orders = ", ".join(f"`{order}`" for order in moving)
        text += (
            f" In a list ordered by {orders}, an item whose value changes between two pages may be "
            "repeated or missing. Every item that does not change is on exactly one page."
        )
    return {
        "name": PARAMETER,
        "in": "query",
        "required": False,
        "description": text,
        "schema": {"type": "string", "enum": list(orders_of(view))},
    }
