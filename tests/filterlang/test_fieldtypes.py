from datetime import UTC, datetime
from uuid import UUID

import pytest
from django import forms
from django.core.exceptions import ImproperlyConfigured

from filterlang.errors import FilterError
from filterlang.fields import field_set
from filterlang.fieldtypes import field_type
from filterlang.nodes import Value
from tests.filterlang.rows import HEALTHS, RowFilters

FIELDS = field_set(RowFilters)
UUID_TEXT = "0198f0aa-1234-7abc-8def-0123456789ab"
INTEGERS = "expected an integer from -9223372036854775808 to 9223372036854775807"
TIMESTAMP = "expected an RFC 3339 timestamp with an offset, such as '2026-01-31T12:00:00Z'"


def convert(name, text, quoted=True):
    return FIELDS[name].type.convert(Value(text, quoted, 7))


def refused(name, text, quoted=True):
    with pytest.raises(FilterError) as caught:
        convert(name, text, quoted)
    error = caught.value
    assert (error.code, error.position) == ("type", 7)
    return error.message, error.suggestion


@pytest.mark.parametrize("text", [UUID_TEXT, UUID_TEXT.upper()])
def test_uuid_is_parsed(text):
    assert convert("id", text) == UUID(UUID_TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1",
        UUID_TEXT.replace("-", ""),
        f"{{{UUID_TEXT}}}",
        f"urn:uuid:{UUID_TEXT}",
        f" {UUID_TEXT}",
        f"{UUID_TEXT}\n",
        UUID_TEXT.replace("0198", "01\u06698"),
    ],
)
def test_non_canonical_uuid_is_rejected(text):
    assert refused("id", text) == ("expected a UUID", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("-0", 0), ("007", 7), (str(-(2**63)), -(2**63)), (str(2**63 - 1), 2**63 - 1)],
)
@pytest.mark.parametrize("quoted", [True, False])
def test_integer_is_parsed(text, value, quoted):
    assert convert("size_bytes", text, quoted) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        "1.0",
        "1e3",
        "+1",
        " 1",
        "1_0",
        "0x1",
        "\u0661",
        "--1",
        str(2**63),
        str(-(2**63) - 1),
        "9" * 1000,
    ],
)
def test_non_integer_is_rejected(text):
    assert refused("size_bytes", text) == (INTEGERS, "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31t12:00:00z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.5+01:30", datetime(2026, 1, 31, 10, 30, 0, 500000, tzinfo=UTC)),
        (
            "2026-01-31T12:00:00.123456000-00:00",
            datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
        ),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_timestamp_is_parsed(text, value):
    converted = convert("created_at", text)
    assert (converted, converted.tzinfo) == (value, UTC)


def test_timestamp_between_two_microseconds_is_parsed():
    below, above = convert("created_at", "2026-01-31T12:00:00.1234567Z")
    assert (below.microsecond, above.microsecond) == (123456, 123457)


@pytest.mark.parametrize(
    ("text", "around"),
    [
        ("-2147483649", (None, -(2**31))),
        ("2147483648", (2**31 - 1, None)),
    ],
)
def test_integer_beyond_the_column_is_rejected(text, around):
    assert convert("replicas", text) == around


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("", ""),
        ("yesterday", ""),
        ("1700000000", ""),
        ("2026-02-30T12:00:00Z", ""),
        ("2026-01-31T25:00:00Z", ""),
        ("2026-01-31T12:00:60Z", ""),
        ("2026-01-31T12:00:00+25:00", ""),
        ("2026-01-31T12:00Z", ""),
        ("2026-W05-6T12:00:00Z", ""),
        # Before the year 1 and after 9999 in UTC.
        ("0001-01-01T00:00:00+01:00", ""),
        ("9999-12-31T23:59:59-01:00", ""),
        ("2026-01-31T12:00:00", "add the offset: '2026-01-31T12:00:00Z'"),
        ("2026-01-31", "add the time and the offset: '2026-01-31T00:00:00Z'"),
        ("2026-01-31 12:00:00Z", "write T before the time: '2026-01-31T12:00:00Z'"),
        ("2026-01-31T12:00:00 01:00", "write + as %2B in an address: '2026-01-31T12:00:00+01:00'"),
    ],
)
def test_non_timestamp_is_rejected(text, suggestion):
    assert refused("created_at", text) == (TIMESTAMP, suggestion)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), ("false", False), ("FALSE", False)]
)
@pytest.mark.parametrize("quoted", [True, False])
def test_boolean_is_parsed(text, value, quoted):
    assert convert("paused", text, quoted) is value


@pytest.mark.parametrize("text", ["", "1", "0", "yes", "on", "None", " true"])
def test_non_boolean_is_rejected(text):
    assert refused("paused", text) == ("expected true or false", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("DEGRADED", "DEGRADED"),
        ("WORKLOAD_HEALTH_STATUS_DEGRADED", "DEGRADED"),
        ("UNSPECIFIED", "WORKLOAD_HEALTH_STATUS_UNSPECIFIED"),
        ("WORKLOAD_HEALTH_STATUS_UNSPECIFIED", "WORKLOAD_HEALTH_STATUS_UNSPECIFIED"),
    ],
)
def test_enum_value_is_parsed(text, value):
    assert convert("health_status", text) == value


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("", ""),
        ("true", ""),
        ("degraded", "did you mean 'DEGRADED'?"),
        ("UNHEALTHY", ""),
        ("WORKLOAD_HEALTH_STATUS_", ""),
        ("WORKLOAD_HEALTH_STATUS_WORKLOAD_HEALTH_STATUS_UNSPECIFIED", ""),
        ("ERROR\u00a0", "remove U+00A0 (NO-BREAK SPACE)"),
        ("HEALTHY ", "did you mean 'HEALTHY'?"),
    ],
)
def test_unknown_enum_value_is_rejected(text, suggestion):
    assert refused("health_status", text) == (f"expected one of {', '.join(HEALTHS)}", suggestion)


@pytest.mark.parametrize("name", ["name", "note", "labels"])
@pytest.mark.parametrize("text", ["", " x ", "10", "%"])
def test_text_is_taken_as_it_is(name, text):
    assert convert(name, text) == text


@pytest.mark.parametrize("name", ["name", "labels"])
def test_text_is_quoted(name):
    assert refused(name, "10", quoted=False) == ("expected a quoted value", "quote the value: '10'")


def test_form_field_without_a_type_is_refused():
    message = "the filter language has no type for DecimalField"
    with pytest.raises(ImproperlyConfigured, match=message):
        field_type(forms.DecimalField())
