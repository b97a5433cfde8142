import pytest
from django.core.exceptions import ImproperlyConfigured
from django_filters import BooleanFilter, CharFilter, FilterSet, NumberFilter

from filterlang.errors import FilterError
from filterlang.fields import Field, field_set, find
from filterlang.nodes import Term
from tests.filterlang.rows import RowFilters

FIELDS = field_set(RowFilters)
ALL = "id, name, note, kind, health_status, size_bytes, replicas, created_at, locked, paused, "
ALL += "serial_number, labels['<key>']"


def refused(name, operator="="):
    with pytest.raises(FilterError) as caught:
        find(FIELDS, Term(name, 6, operator, 14))
    error = caught.value
    return error.code, error.position, error.message, error.suggestion


def test_field_set_matches_the_filterset():
    assert {
        name: (field.type.name, field.path, field.equals, field.inverted, field.nullable)
        for name, field in FIELDS.items()
    } == {
        "id": ("uuid", "uid", "uid__exact", False, True),
        "name": ("string", "name", "name__exact", False, False),
        "note": ("string", "note", "note__exact", False, True),
        "kind": ("enum", "kind", "kind__exact", False, False),
        "health_status": ("enum", "health", "health__exact", False, True),
        "size_bytes": ("integer", "size", "size__exact", False, True),
        "replicas": ("integer", "replicas", "replicas__exact", False, True),
        "created_at": ("timestamp", "created_at", "created_at__exact", False, True),
        "locked": ("boolean", "lock_id", "lock_id__isnull", True, False),
        "paused": ("boolean", "paused", "paused__exact", False, True),
        "serial_number": ("identifier", "name", "name__exact", False, False),
        "labels": ("label", "labels", "labels__exact", False, False),
    }


def test_it_is_made_once():
    assert field_set(RowFilters) is FIELDS


@pytest.mark.parametrize(
    ("name", "field", "key"),
    [
        ("kind", "kind", None),
        ("labels.app", "labels", "app"),
        ("labels.a.b/c", "labels", "a.b/c"),
        ("labels.", "labels", ""),
    ],
)
def test_fields_are_found(name, field, key):
    assert find(FIELDS, Term(name, 6, "=", 14)) == (FIELDS[field], key)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("nam", "did you mean 'name'?"),
        ("KIND", "did you mean 'kind'?"),
        ("label", "did you mean 'labels'?"),
        ("labels", "write labels['<key>']"),
        ("kind.x", "did you mean 'kind'?"),
        ("", ""),
        ("created_at__year", ""),
        ("updated_at", ""),
        ("unlocked", ""),
        ("name\u200b", "remove U+200B (ZERO WIDTH SPACE)"),
        ("pk", ""),
        ("_state", ""),
    ],
)
def test_unknown_field_is_rejected(name, suggestion):
    message = f"unknown field '{name}'; filterable fields: {ALL}"
    assert refused(name) == ("unknown_field", 6, message, suggestion)


EQUALITY = ["=", "!=", "IN", "NOT IN"]
ORDER = ["=", "!=", "<", "<=", ">", ">=", "BETWEEN", "IN", "NOT IN"]
TEXT = [*EQUALITY, "~=", "CONTAINS", "STARTS_WITH", "ENDS_WITH"]
PRESENCE = ["EXISTS", "IS NULL", "IS NOT NULL"]


@pytest.mark.parametrize(
    ("name", "kind", "allowed"),
    [
        ("id", "uuid", [*EQUALITY, *PRESENCE]),
        ("kind", "enum", EQUALITY),
        ("paused", "boolean", ["=", "!=", *PRESENCE]),
        ("locked", "boolean", ["=", "!="]),
        ("serial_number", "identifier", ["=", "!=", "IN", "NOT IN"]),
        ("size_bytes", "integer", [*ORDER, *PRESENCE]),
        ("created_at", "timestamp", [*ORDER, *PRESENCE]),
        ("name", "string", TEXT),
        ("note", "string", [*TEXT, *PRESENCE]),
        ("labels.app", "label", [*TEXT, *PRESENCE]),
    ],
)
@pytest.mark.parametrize(
    "operator",
    [*ORDER, "~=", "CONTAINS", "STARTS_WITH", "ENDS_WITH", *PRESENCE],
)
def test_each_type_supports_its_operators(name, kind, allowed, operator):
    if operator in allowed:
        assert find(FIELDS, Term(name, 6, operator, 14))[0].type.name == kind
    else:
        message = f"not allowed for field '{name}' ({kind})"
        suggestion = f"allowed: {', '.join(allowed)}"
        assert refused(name, operator) == ("operator", 14, message, suggestion)


class ByMethod(FilterSet):
    name = CharFilter(method="by_name")


class ByLookup(FilterSet):
    name = CharFilter(lookup_expr="iexact")


class ByExclusion(FilterSet):
    name = CharFilter(exclude=True)


@pytest.mark.parametrize("filterset", [ByMethod, ByLookup, ByExclusion])
def test_unsupported_filter_is_refused(filterset):
    with pytest.raises(ImproperlyConfigured) as caught:
        field_set(filterset)
    assert str(caught.value) == (
        f"{filterset.__name__}.name: the filter language does not support `method`, and "
        "supports `lookup_expr` and `exclude` only for booleans"
    )


def test_filter_without_a_type_is_refused():
    class Numbers(FilterSet):
        size = NumberFilter()

    with pytest.raises(ImproperlyConfigured, match="no type for DecimalField"):
        field_set(Numbers)


def test_a_boolean_may_be_excluded_and_looked_up():
    class Locks(FilterSet):
        free = BooleanFilter(field_name="lock_id", lookup_expr="isnull")

    (field,) = field_set(Locks).values()
    assert isinstance(field, Field)
    assert (field.equals, field.inverted) == ("lock_id__isnull", False)
