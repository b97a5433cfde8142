"""What lists may be filtered by; each column has an index that ends with the order of the pages."""

from django_filters import BooleanFilter, CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import IdentifierFilter, IntegerFilter


class StateFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of states."""

    component_id = UUIDFilter()
    environment_id = UUIDFilter()
    # Of the state's component; copied into the state.
    application_id = UUIDFilter()
    id = UUIDFilter()
    serial = IntegerFilter()
    lineage = IdentifierFilter()
    size_bytes = IntegerFilter()
    created_at = IsoDateTimeFilter()
    updated_at = IsoDateTimeFilter()
    locked = BooleanFilter(field_name="lock_id", lookup_expr="isnull", exclude=True)


class CatalogueFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of applications and environments."""

    id = UUIDFilter()
    name = CharFilter()


class ComponentFilters(CatalogueFilters):
    """The filterable fields of components."""

    application_id = UUIDFilter()
