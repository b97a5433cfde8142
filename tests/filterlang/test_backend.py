import subprocess
import sys
from types import SimpleNamespace

import pytest
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from rest_framework.exceptions import APIException
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.test import APIRequestFactory

from filterlang.backend import FilterLanguageBackend, InvalidFilter
from tests.filterlang.rows import Row, RowFilters

VIEW = SimpleNamespace(filterset_class=RowFilters)
BARE = SimpleNamespace()


def filtered(query, view=VIEW):
    request = Request(APIRequestFactory().get("/", query))
    return FilterLanguageBackend().filter_queryset(request, Row.objects.all(), view)


def refused(query):
    with pytest.raises(InvalidFilter) as caught:
        filtered(query)
    error = caught.value
    assert isinstance(error, APIException)
    assert (error.status_code, error.default_code) == (400, "INVALID_FILTER")
    return str(error.detail), error.metadata


def test_a_filter_selects(rows):
    one = rows.create(name="one", kind="Deployment")
    rows.create(name="two", kind="Deployment")
    assert list(filtered({"filter": "field['name'] = 'one'"})) == [one]


@pytest.mark.parametrize("query", [{}, {"filter": ""}, {"filter": "  "}, {"other": "x"}])
def test_no_filter_selects_everything(query):
    assert not filtered(query).query.where


def test_a_view_without_a_field_set_is_left_alone():
    assert not filtered({"filter": "what?"}, BARE).query.where


def test_invalid_filter_is_rejected():
    assert refused({"filter": "field['name'] == 'x'"}) == (
        "expected an operator; did you mean = ?",
        {"code": "syntax", "position": "14", "suggestion": "did you mean = ?"},
    )


def test_invalid_filter_may_have_no_suggestion():
    assert refused({"filter": "(field['name'] = 'x'"}) == (
        "'(' is never closed",
        {"code": "syntax", "position": "0"},
    )


def test_second_filter_is_rejected():
    assert refused({"filter": ["field['name'] = 'x'", ""]}) == (
        "expected one filter; join the filters with AND",
        {"code": "syntax", "position": "0", "suggestion": "join the filters with AND"},
    )


def test_openapi_parameter_is_complete():
    (parameter,) = FilterLanguageBackend().get_schema_operation_parameters(VIEW)
    description = parameter.pop("description")
    fields = parameter.pop("x-filter-fields")
    assert parameter == {
        "name": "filter",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "maxLength": 1024},
    }
    assert description.splitlines() == [
        (
            "A filter of the listed items: terms such as `field['name'] = 'value'`, combined with "
            "`AND`, `OR`, `NOT` and parentheses. Values are quoted text, integers, `true` or "
            "`false`. `BETWEEN a AND b` takes two values, `IN (a, b)` a list, and `EXISTS`, `IS "
            "NULL` and `IS NOT NULL` no value."
        ),
        "",
        "| field | type | operators |",
        "|---|---|---|",
        "| `id` | uuid | `=` `!=` `IN` `NOT IN` `EXISTS` `IS NULL` `IS NOT NULL` |",
        "| `name` | string | `=` `!=` `IN` `NOT IN` `~=` `CONTAINS` `STARTS_WITH` `ENDS_WITH` |",
        (
            "| `note` | string | `=` `!=` `IN` `NOT IN` `~=` `CONTAINS` `STARTS_WITH` `ENDS_WITH` "
            "`EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
        "| `kind` | enum: `Deployment`, `StatefulSet`, `DaemonSet` | `=` `!=` `IN` `NOT IN` |",
        (
            "| `health_status` | enum: `WORKLOAD_HEALTH_STATUS_UNSPECIFIED`, `HEALTHY`, "
            "`DEGRADED`, `ERROR` | `=` `!=` `IN` `NOT IN` `EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
        (
            "| `size_bytes` | integer | `=` `!=` `<` `<=` `>` `>=` `BETWEEN` `IN` `NOT IN` "
            "`EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
        (
            "| `replicas` | integer | `=` `!=` `<` `<=` `>` `>=` `BETWEEN` `IN` `NOT IN` "
            "`EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
        (
            "| `created_at` | timestamp | `=` `!=` `<` `<=` `>` `>=` `BETWEEN` `IN` `NOT IN` "
            "`EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
        "| `locked` | boolean | `=` `!=` |",
        "| `paused` | boolean | `=` `!=` `EXISTS` `IS NULL` `IS NOT NULL` |",
        "| `serial_number` | identifier | `=` `!=` `IN` `NOT IN` |",
        (
            "| `labels['<key>']` | label | `=` `!=` `IN` `NOT IN` `~=` `CONTAINS` `STARTS_WITH` "
            "`ENDS_WITH` `EXISTS` `IS NULL` `IS NOT NULL` |"
        ),
    ]
    assert list(fields) == [
        "id", "name", "note", "kind", "health_status", "size_bytes", "replicas", "created_at",
        "locked", "paused", "serial_number", "labels['<key>']",
    ]  # fmt: skip
    assert fields["kind"] == {
        "type": "enum",
        "operators": ["=", "!=", "IN", "NOT IN"],
        "values": ["Deployment", "StatefulSet", "DaemonSet"],
    }
    assert fields["locked"] == {"type": "boolean", "operators": ["=", "!="]}


def test_spectacular_finds_the_parameter():
    class View(ListAPIView):
        public = True
        queryset = Row.objects.all()
        serializer_class = Serializer
        filter_backends = (FilterLanguageBackend,)
        filterset_class = RowFilters
        pagination_class = None

    generator = SchemaGenerator(patterns=[path("rows", View.as_view())])
    operation = generator.get_schema(public=True)["paths"]["/rows"]["get"]
    assert operation["parameters"] == FilterLanguageBackend().get_schema_operation_parameters(VIEW)


def test_no_parameter_without_a_field_set():
    assert FilterLanguageBackend().get_schema_operation_parameters(BARE) == []


def test_settings_may_name_the_backend():
    # DRF's views import the classes in its settings, so the backend must not import the views.
    program = """
from django.conf import settings
name = "filterlang.backend.FilterLanguageBackend"
settings.configure(REST_FRAMEWORK={"DEFAULT_FILTER_BACKENDS": [name]})
import django
django.setup()
import filterlang.backend, sys
assert not {"rest_framework.views", "rest_framework.generics"} & set(sys.modules)
from rest_framework.generics import GenericAPIView
assert GenericAPIView.filter_backends == [filterlang.backend.FilterLanguageBackend]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
