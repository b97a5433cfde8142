"""Pages by keyset, over API keys with equal names."""

import datetime as dt
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.test import APIRequestFactory

from apikeys.api.filters import ApiKeyFilters
from apikeys.models import ApiKey, User
from filterlang.backend import FilterLanguageBackend
from infra_service.lib.api import pagination
from infra_service.lib.api.pagination import ITEMS, InvalidPageToken, KeysetPagination
from infra_service.lib.api.parameters import InvalidParameter


class AsItIs(BaseSerializer[Any]):
    def to_representation(self, instance: Any) -> Any:
        return instance


def view(*page_key: str, **more: Any) -> Any:
    return SimpleNamespace(
        page_key=page_key,
        resource_plural="things",
        filter_backends=[FilterLanguageBackend],
        filterset_class=ApiKeyFilters,
        get_serializer_class=lambda: AsItIs,
        get_serializer=AsItIs,
        **more,
    )


BY_ID = view("id")


def page(
    queryset: Any, of: Any = BY_ID, path: str = "/things", **query: Any
) -> tuple[list[Any], str]:
    """Return the rows and the next token."""
    request = Request(APIRequestFactory().get(f"{path}?{urlencode(query, doseq=True)}"))
    answer = KeysetPagination().answer(queryset, request, of).data
    assert list(answer) == ["things", "next_page_token"]
    return answer["things"], answer["next_page_token"]


def walk(queryset: Any, of: Any, size: int, **query: Any) -> list[Any]:
    seen: list[Any] = []
    token = ""
    while True:
        rows, token = page(queryset, of, page_size=size, page_token=token, **query)
        assert len(rows) <= size
        seen += rows
        if not token:
            return seen
        assert len(rows) == size


@pytest.fixture
def keys(operator: User) -> list[ApiKey]:
    """Nine keys, three of each name, in an order of creation that is not the names'."""
    return [
        ApiKey.objects.create(
            created_by=operator,
            name="cab"[number % 3],
            scopes=["state:read"],
            digest=bytes([number]) * 32,
            created_at=dt.datetime(2026, 1, 1 + number // 2, tzinfo=dt.UTC),
        )
        for number in range(9)
    ]


@pytest.mark.both
@pytest.mark.parametrize("size", range(1, 11))
@pytest.mark.parametrize(
    "key",
    [
        ("id",),
        ("-id",),
        ("name", "id"),
        ("-name", "-id"),
        ("created_at", "id"),
        ("-created_at", "-name", "-id"),
        ("created_by_id", "name", "id"),
    ],
)
def test_pages_contain_every_row_once_in_order(
    keys: list[ApiKey], key: tuple[str, ...], size: int
) -> None:
    rows = walk(ApiKey.objects.all(), view(*key), size)

    assert rows == list(ApiKey.objects.order_by(*key))


ORDERED = view("-created_at", "-id", other_keys=(("name", "id"),))


@pytest.mark.parametrize("size", [1, 4, 9])
@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("", ("-created_at", "-id")),
        ("created_at desc", ("-created_at", "-id")),
        ("created_at", ("created_at", "id")),
        ("name", ("name", "id")),
        ("name desc", ("-name", "-id")),
    ],
)
def test_requested_order_is_applied(
    keys: list[ApiKey], order: str, key: tuple[str, ...], size: int
) -> None:
    rows = walk(ApiKey.objects.all(), ORDERED, size, order_by=order)

    assert rows == list(ApiKey.objects.order_by(*key))


@pytest.mark.parametrize(
    "order", ["id", "-name", " name", "name  desc", "name,id", "name DESC", "\0", "x" * 99]
)
def test_order_without_an_index_is_rejected(operator: User, order: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        page(ApiKey.objects.all(), ORDERED, order_by=order)

    assert caught.value.field_violations == [
        {
            "field": "order_by",
            "description": "The list cannot be sorted in this order. The supported orders are "
            "'created_at', "
            "'created_at desc', 'name', 'name desc'.",
            "reason": "UNKNOWN_VALUE",
        }
    ]


def test_rows_may_be_dicts(keys: list[ApiKey]) -> None:
    queryset = ApiKey.objects.values("name", "id")

    assert walk(queryset, view("name", "id"), 4) == list(queryset.order_by("name", "id"))


def test_page_is_a_single_query_without_count_or_offset(keys: list[ApiKey]) -> None:
    _, token = page(ApiKey.objects.all(), view("name", "id"), page_size=2)
    with CaptureQueriesContext(connection) as queries:
        page(ApiKey.objects.all(), view("name", "id"), page_size=2, page_token=token)

    (query,) = [q["sql"] for q in queries.captured_queries]
    assert "COUNT" not in query
    assert "OFFSET" not in query
    assert "LIMIT 3" in query
    if connection.vendor == "postgresql":
        assert '("apikeys_apikey"."name", "apikeys_apikey"."id") > (' in query


def test_the_last_page_may_be_full(keys: list[ApiKey]) -> None:
    _, token = page(ApiKey.objects.all(), page_size=6)

    rows, last = page(ApiKey.objects.all(), page_size=3, page_token=token)

    assert (len(rows), last) == (3, "")


def test_pages_stay_complete_while_rows_change(keys: list[ApiKey]) -> None:
    first, token = page(ApiKey.objects.all(), page_size=4)
    ApiKey.objects.filter(pk__in=[first[-1].pk, keys[4].pk]).delete()

    rows, _ = page(ApiKey.objects.all(), page_size=4, page_token=token)

    assert rows == keys[5:9]


@pytest.mark.parametrize(("text", "size"), [("", 50), ("0", 50), ("1", 1), ("100", 100)])
def test_page_sizes_are_limited(operator: User, text: str, size: int) -> None:
    with CaptureQueriesContext(connection) as queries:
        page(ApiKey.objects.all(), page_size=text)

    assert f"LIMIT {size + 1}" in queries.captured_queries[0]["sql"]


@pytest.mark.parametrize(
    "text",
    ["-1", "101", "x", "1.0", " 1", "+1", "1_0", "١", "9" * 5000, "1\0"],  # noqa: RUF001
)
def test_invalid_page_sizes_are_rejected(operator: User, text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        page(ApiKey.objects.all(), page_size=text)

    assert caught.value.field_violations == [
        {
            "field": "page_size",
            "description": "Not an integer from 0 to 100.",
            "reason": "OUT_OF_RANGE",
        }
    ]


def test_a_token_is_good_for_another_size_and_a_final_slash(keys: list[ApiKey]) -> None:
    _, token = page(ApiKey.objects.all(), page_size=4)

    rows, _ = page(ApiKey.objects.all(), path="/things/", page_size=2, page_token=token)

    assert rows == keys[4:6]


def test_blank_filter_equals_no_filter(keys: list[ApiKey]) -> None:
    _, token = page(ApiKey.objects.all(), page_size=4)

    page(ApiKey.objects.all(), filter="  ", page_token=token)


@pytest.mark.parametrize("change", ["path", "filter", "order", "parameter", "key"])
def test_a_token_of_another_list(keys: list[ApiKey], change: str) -> None:
    of = view("id", list_parameters=("deep",))
    _, token = page(ApiKey.objects.all(), of, page_size=4)
    query: dict[str, Any] = {
        "path": {"path": "/others"},
        "filter": {"filter": "field['name'] = 'a'"},
        "order": {"order_by": "id desc"},
        "parameter": {"deep": "1"},
        "key": {"of": view("name", "id")},
    }[change]

    with pytest.raises(InvalidPageToken):
        page(ApiKey.objects.all(), **{"of": of, **query}, page_token=token)


@pytest.mark.parametrize("token", ["x", "a:b:c", "\0", "\ud800", "é" * 10, "x" * 10_000])
def test_foreign_page_token_is_rejected(operator: User, token: str) -> None:
    with pytest.raises(InvalidPageToken) as refused:
        _paginate(token)
    assert refused.value.status_code == 400


@pytest.mark.parametrize("payload", ["[]", '"x"', "{}", "5", '["x", "y"]', "no JSON"])
@pytest.mark.parametrize("cipher", [pagination._cipher(), Fernet(Fernet.generate_key())])
def test_encrypted_foreign_page_token_is_rejected(
    operator: User, payload: str, cipher: Any
) -> None:
    with pytest.raises(InvalidPageToken):
        _paginate(cipher.encrypt(payload.encode()).decode())


def test_a_token_from_before_a_rotation_of_the_secret_key(
    keys: list[ApiKey], settings: Any
) -> None:
    _, token = page(ApiKey.objects.all(), page_size=4)
    settings.SECRET_KEY, former = "n" * 50, settings.SECRET_KEY
    with pytest.raises(InvalidPageToken):
        page(ApiKey.objects.all(), page_token=token)

    settings.SECRET_KEY_FALLBACKS = [former]
    assert page(ApiKey.objects.all(), page_token=token)[0]


def _paginate(token: str) -> None:
    request: Any = SimpleNamespace(path="/things", query_params=_parameters(page_token=token))
    KeysetPagination().answer(ApiKey.objects.all(), request, BY_ID)


def _parameters(**values: str) -> Any:
    parameters = QueryDict(mutable=True)
    for name, value in values.items():
        parameters[name] = value
    return parameters


def test_a_token_is_good_for_three_days(
    keys: list[ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = page(ApiKey.objects.all(), page_size=4)
    made, minute = time.time(), 60
    monkeypatch.setattr(time, "time", lambda: made + 3 * 24 * 60 * minute - minute)
    page(ApiKey.objects.all(), page_token=token)

    monkeypatch.setattr(time, "time", lambda: made + 3 * 24 * 60 * minute + minute)
    with pytest.raises(InvalidPageToken):
        page(ApiKey.objects.all(), page_token=token)


def test_a_token_of_an_instance_with_a_fast_clock(
    keys: list[ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, token = page(ApiKey.objects.all(), page_size=4)
    made = time.time()
    monkeypatch.setattr(time, "time", lambda: made - 120)

    rest, _ = page(ApiKey.objects.all(), page_token=token)

    assert len(first) + len(rest) == len(keys)


@pytest.mark.parametrize(
    ("query", "field", "reason", "text"),
    [
        ({"pagesize": 1}, "pagesize", "UNKNOWN_PARAMETER", "did you mean 'page_size'?"),
        ({"Filter": "x"}, "Filter", "UNKNOWN_PARAMETER", "did you mean 'filter'?"),
        (
            {"q": "x"},
            "q",
            "UNKNOWN_PARAMETER",
            "known parameters are deep, filter, order_by, page_size, page_token",
        ),
        ({"page_size": [1, 2]}, "page_size", "DUPLICATE", "Given more than once."),
    ],
)
def test_unknown_list_parameters_are_rejected(
    operator: User, query: dict[str, Any], field: str, reason: str, text: str
) -> None:
    with pytest.raises(InvalidParameter, match=text) as caught:
        page(ApiKey.objects.all(), view("id", list_parameters=("deep",)), **query)

    (violation,) = caught.value.field_violations
    assert (violation["field"], violation["reason"]) == (field, reason)


def test_schema_describes_parameters_and_response() -> None:
    pagination = KeysetPagination()
    pagination.view = BY_ID

    described = pagination.get_schema_operation_parameters(pagination.view)
    assert {one["name"]: (one["required"], one["schema"]) for one in described} == {
        "page_size": (
            False,
            {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100, "default": 50},
        ),
        "page_token": (False, {"type": "string"}),
    }
    answer = pagination.get_paginated_response_schema({"type": "array"})
    assert (answer["type"], answer["required"]) == ("object", ["things", "next_page_token"])
    assert answer["properties"]["things"] == {"type": "array", "description": ITEMS}
