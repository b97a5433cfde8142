"""System checks of lists: filters and orders have an index, or are declared as searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import FieldDoesNotExist
from django.urls import get_resolver

from infra_service.lib.api.orders import keys_of
from infra_service.lib.api.routes import routes
from infra_service.lib.database.bounded_pages.conditions import (
    Comparison,
    Conditions,
    Kind,
    conditions_of,
)
from infra_service.lib.database.bounded_pages.indexes import indexes_of, walk
from infra_service.lib.database.bounded_pages.segments import with_nulls_last

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra_service.lib.database.bounded_pages.segments import Segment


@register
def every_filter_is_in_an_index(**_kwargs: Any) -> list[CheckMessage]:
    """Report each filterable field without an index or declaration, and needless declarations."""
    # Imported here because compiling the grammar is slow, and most commands do not need it.
    from filterlang.fields import field_set  # noqa: PLC0415

    found: list[CheckMessage] = []
    for view in sorted(set(lists(get_resolver().url_patterns)), key=lambda view: view.__name__):
        fields = field_set(view.filterset_class)
        searched = set(getattr(view, "searched_fields", ()))
        served = {name for name, field in fields.items() if is_served(view, field.path)}
        for name in sorted((set(fields) - served) ^ searched):
            wrong = "has an index, or is not a field" if name in searched else "has no index"
            found.append(
                Error(
                    f"{view.__name__} is filtered by {name}, which {wrong}.",
                    hint="Add an index that ends with page_key, or add the field to "
                    "searched_fields: the list is then searched in segments.",
                    id="infra_service.E002",
                )
            )
    return found


@register
def every_field_set_names_its_model(**_kwargs: Any) -> list[CheckMessage]:
    """Report each list whose field set has another model, which may lack the list's columns."""
    return [
        Error(
            f"{view.filterset_class.__name__} has a different model than {view.__name__}.",
            hint="Set Meta.model to the model of the view's queryset.",
            id="infra_service.E006",
        )
        for view in set(lists(get_resolver().url_patterns))
        if view.filterset_class._meta.model is not view.queryset.model
    ]


@register
def every_list_is_in_the_order_of_an_index(**_kwargs: Any) -> list[CheckMessage]:
    """Report each list order that the database would have to sort."""
    return [
        Error(
            f"{view.__name__} is in the order of {', '.join(key)}, but no index has this order.",
            id="infra_service.E003",
        )
        for view in set(lists(get_resolver().url_patterns))
        for key in keys_of(view)
        if not all(
            _is_walked(view, segment) for segment in with_nulls_last(view.queryset.model, key)
        )
    ]


def _is_walked(view: Any, segment: Segment) -> bool:
    """Return whether an index provides the rows of the segment in order."""
    model, scope = view.queryset.model, _scope_of(view)
    nulls = conditions_of(model._default_manager.filter(segment.condition).query)
    conditions = Conditions((*scope.comparisons, *nulls.comparisons), 0)
    return walk(model, conditions, segment.key).index in indexes_of(model)


def _scope_of(view: Any) -> Conditions:
    """Return the conditions of ``get_queryset``: columns with a fixed value, or null."""
    scope = getattr(view, "scoped_by", ())
    kinds = (Kind.EQUAL, Kind.NULL)
    return Conditions(tuple(Comparison(name, kind, None) for name in scope for kind in kinds), 0)


def lists(patterns: Sequence[Any]) -> Iterator[Any]:
    """Yield the views that have a filter."""
    for route in routes(patterns):
        view = getattr(route.callback, "cls", None)
        if getattr(view, "filterset_class", None) and getattr(view, "page_key", None):
            yield view


def is_served(view: Any, path: str) -> bool:
    """Return whether an index finds rows of the view's queryset by this column."""
    name, *rest = path.split("__")
    model, scope = view.queryset.model, getattr(view, "scoped_by", ())
    try:
        field: Any = model._meta.get_field(name)
    except FieldDoesNotExist:  # a computed field
        return False
    if hasattr(field, "implied_by") or (rest and not field.is_relation):
        return rest == []
    return any(_finds(index, field.attname, scope) for index in indexes_of(model))


def _finds(index: Any, column: str, scope: Sequence[str]) -> bool:
    columns = [name for name, _ in index.columns if name not in scope]
    demanded = {name for name, _ in index.demands if name not in scope}
    return demanded == {column} or (demanded == set() and columns[:1] == [column])
