"""Filterable fields without an index are detected."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.urls import path
from django_filters import CharFilter, FilterSet

from apikeys.models import AuditEvent
from infra_service.lib.api.viewsets import ResourceViewSet
from infra_service.list_checks import (
    every_field_set_names_its_model,
    every_filter_is_in_an_index,
    every_list_is_in_the_order_of_an_index,
)
from tests.infra_service.test_checks import urlpatterns_of


class Filters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    token_id = CharFilter()
    actor_name = CharFilter()

    class Meta:
        model = AuditEvent
        fields = ()


class Events(ResourceViewSet[AuditEvent]):
    queryset = AuditEvent.objects.all()
    filterset_class = Filters
    page_key = ("occurred_at", "id")


class Searched(Events):
    searched_fields = ("actor_name",)


class NeedlesslySearched(Events):
    searched_fields = ("actor_name", "token_id")


class Unordered(Searched):
    page_key = ("actor_name", "id")


@pytest.mark.parametrize(
    ("view", "wrong"),
    [
        (Searched, []),
        (Events, ["Events is filtered by actor_name, which has no index."]),
        (
            NeedlesslySearched,
            ["NeedlesslySearched is filtered by token_id, which has an index, or is not a field."],
        ),
    ],
)
def test_filters_select_matching_items(settings: Any, view: Any, wrong: list[str]) -> None:
    settings.ROOT_URLCONF = urlpatterns_of(path("a", view.as_view({"get": "list"})))

    found = every_filter_is_in_an_index()

    assert [error.msg for error in found] == wrong
    assert {error.id for error in found} <= {"infra_service.E002"}


class WithoutModel(FilterSet):  # type: ignore[misc]  # django-filter has no types
    token_id = CharFilter()


class OfNoColumns(Events):
    filterset_class = WithoutModel


@pytest.mark.parametrize(
    ("view", "wrong"),
    [(Events, []), (OfNoColumns, ["WithoutModel has a different model than OfNoColumns."])],
)
def test_the_models_of_field_sets(settings: Any, view: Any, wrong: list[str]) -> None:
    settings.ROOT_URLCONF = urlpatterns_of(path("a", view.as_view({"get": "list"})))

    assert [error.msg for error in every_field_set_names_its_model()] == wrong


class UnorderedOtherwise(Searched):
    other_keys = (("token_id", "occurred_at", "id"), ("actor_name", "id"))


class OfOneToken(Searched):
    scoped_by = ("token_id",)


class UnorderedInItsScope(OfOneToken):
    page_key = ("actor_name", "id")


@pytest.mark.parametrize(
    ("view", "number"),
    [
        (Searched, 0),
        (Unordered, 1),
        (UnorderedOtherwise, 1),
        (OfOneToken, 0),
        (UnorderedInItsScope, 1),
    ],
)
def test_orders_are_checked(settings: Any, view: Any, number: int) -> None:
    settings.ROOT_URLCONF = urlpatterns_of(path("a", view.as_view({"get": "list"})))

    found = every_list_is_in_the_order_of_an_index()

    assert [error.id for error in found] == ["infra_service.E003"] * number


def test_the_real_lists() -> None:
    assert every_filter_is_in_an_index() == []
    assert every_list_is_in_the_order_of_an_index() == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite compares bytes by default")
def test_columns_in_byte_order_do_not_depend_on_the_locale(db: None) -> None:
    declared = {
        (model._meta.db_table, name)
        for model in apps.get_models()
        for name in getattr(model, "byte_ordered", ())
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text, attname FROM pg_attribute"
            " JOIN pg_collation ON pg_collation.oid = attcollation"
            " JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE collname = 'C' AND relkind = 'r'"
        )
        assert declared - set(cursor.fetchall()) == set()
    assert len(declared) > 1
