"""The indexes of a model, and the index that is chosen for a list.

These tests read no table. ``test_plans.py`` of each app tests that PostgreSQL uses these indexes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.db.models import F, Q

from infra_service.lib.database.bounded_pages.conditions import Kind, conditions_of
from infra_service.lib.database.bounded_pages.indexes import (
    Access,
    PageIndex,
    indexes_of,
    ordered_by,
    sets,
    walk,
)
from tests.infra_service.books import Book, Chapter

BY_ID = PageIndex((("id", False),), is_unique=True)
BY_ISBN = PageIndex((("isbn", False),), is_unique=True)
BY_SHELF = PageIndex((("shelf_id", False),))
BY_PLACE = PageIndex((("shelf_id", False), ("place", False)), is_unique=True)
BY_LENT = PageIndex((("lent_at", False),), (("sold_at", Kind.NULL),), is_unique=True)
BY_PAGES = PageIndex((("pages", True), ("id", False)))
BY_SHELF_AND_PAGES = PageIndex(
    (("shelf_id", False), ("pages", False), ("id", False), ("place", False))
)
UNSOLD = PageIndex(
    (("title", False), ("id", False)), (("lent_at", Kind.NOT_NULL), ("sold_at", Kind.NULL))
)


def test_indexes_are_derived_from_fields_constraints_and_indexes() -> None:
    assert indexes_of(Book) == (
        BY_ID, BY_ISBN, BY_SHELF, BY_PLACE, BY_LENT, BY_PAGES, BY_SHELF_AND_PAGES, UNSOLD,
    )  # fmt: skip
    assert indexes_of(Chapter) == (
        PageIndex((("book_id", False), ("number", False)), is_unique=True),
        PageIndex((("kind", False), ("level", False), ("number", False))),
    )


class Scan(NamedTuple):
    """An index scan, with the names of the compared columns."""

    index: PageIndex
    equal: str = ""
    within: str = ""
    demanded: str = ""
    order: str = ""


def scan_of(access: Access) -> Scan:
    compared = (access.equal, access.within, access.demanded)
    names = (" ".join(comparison.column for comparison in part) for part in compared)
    return Scan(access.index, *names, order=" ".join(access.order))


def conditions(condition: Q) -> Any:
    return conditions_of(Book._base_manager.filter(condition).query)


def walked(condition: Q, *key: str) -> Access:
    return walk(Book, conditions(condition), key)


UNSOLD_AND_LENT = Q(sold_at=None, lent_at__isnull=False)


@pytest.mark.parametrize(
    ("condition", "key", "expected"),
    [
        (Q(), "id", Scan(BY_ID, order="id")),
        (Q(), "-id", Scan(BY_ID, order="-id")),
        (Q(id__gt=1, id__lt=9), "id", Scan(BY_ID, within="id id", order="id")),
        (Q(id__in=[1, 2]), "id", Scan(BY_ID, order="id")),
        (Q(), "-pages id", Scan(BY_PAGES, order="-pages id")),
        (Q(), "pages -id", Scan(BY_PAGES, order="pages -id")),
        (Q(pages__gt=3), "-pages id", Scan(BY_PAGES, within="pages", order="-pages id")),
        (Q(pages__isnull=False), "pages -id", Scan(BY_PAGES, "", "pages", order="pages -id")),
        (Q(pages=3), "id", Scan(BY_PAGES, "pages", order="-pages id")),
        (Q(pages=3), "-id", Scan(BY_PAGES, "pages", order="pages -id")),
        (Q(pages=None), "id", Scan(BY_PAGES, "pages", order="-pages id")),
        (
            Q(shelf=1, pages=3),
            "id",
            Scan(BY_SHELF_AND_PAGES, "shelf_id pages", order="shelf_id pages id"),
        ),
        (
            Q(shelf=1) & Q(shelf=2),
            "pages id",
            Scan(BY_SHELF_AND_PAGES, "shelf_id", order="shelf_id pages id"),
        ),
        # A unique index may contain many rows with null.
        (Q(shelf=1, place=None), "place", Scan(BY_PLACE, "shelf_id", order="shelf_id place")),
        # A row is found without the order of an index.
        (Q(isbn="a", id__gt=1), "id", Scan(BY_ISBN, "isbn", order="isbn id")),
        (Q(isbn="a", title="a") & UNSOLD_AND_LENT, "id", Scan(BY_ISBN, "isbn", order="isbn id")),
        (Q(pages=3, id=1), "id", Scan(BY_ID, "id", order="id id")),
        # A partial index requires its conditions.
        (
            Q(title="a") & UNSOLD_AND_LENT,
            "id",
            Scan(UNSOLD, "title", demanded="lent_at sold_at", order="title id"),
        ),
        (
            Q(title="a", sold_at=None, lent_at__gt=3),
            "id",
            Scan(UNSOLD, "title", "", "sold_at", "title id"),
        ),
        (
            Q(title="a", sold_at=None, lent_at__in=[3, 4]),
            "id",
            Scan(UNSOLD, "title", "", "sold_at", "title id"),
        ),
        (
            Q(title="a", sold_at=None, lent_at=3),
            "id",
            Scan(BY_LENT, "lent_at", "", "sold_at", "lent_at id"),
        ),
        (Q(title="a", sold_at=None), "id", Scan(BY_ID, order="id")),
        (Q(title="a", lent_at__isnull=False), "id", Scan(BY_ID, order="id")),
        (Q(title="a", sold_at=3, lent_at__isnull=False), "id", Scan(BY_ID, order="id")),
    ],
)
def test_index_in_the_order_of_the_list(condition: Q, key: str, expected: Scan) -> None:
    assert scan_of(walked(condition, *key.split())) == expected


@pytest.mark.parametrize("key", ["pages id", "-pages -id", "id pages", "title id", "shelf_id id"])
def test_order_without_an_index(key: str) -> None:
    assert walked(Q(), *key.split()).index not in indexes_of(Book)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Q(), []),
        (Q(title="a", place=1), []),
        (Q(shelf=1), [Scan(BY_SHELF, "shelf_id", order="shelf_id")]),
        (
            Q(shelf=1, id=3),
            [Scan(BY_ID, "id", order="id"), Scan(BY_SHELF, "shelf_id", order="shelf_id")],
        ),
        (Q(shelf=1, place=2), [Scan(BY_PLACE, "shelf_id place", order="shelf_id place")]),
        (Q(pages__gt=3), [Scan(BY_PAGES, within="pages", order="-pages id")]),
        (Q(pages__in=[3, 4]), [Scan(BY_PAGES, within="pages", order="-pages id")]),
        (
            Q(pages__in=[3, 4]) & Q(pages__in=[4, 5]),
            [Scan(BY_PAGES, within="pages", order="-pages id")],
        ),
        (
            Q(isbn="a", pages=4),
            [Scan(BY_ISBN, "isbn", order="isbn"), Scan(BY_PAGES, "pages", order="-pages id")],
        ),
        (UNSOLD_AND_LENT, [Scan(UNSOLD, demanded="lent_at sold_at", order="title id")]),
        (
            UNSOLD_AND_LENT & Q(sold_at=None),
            [Scan(UNSOLD, demanded="lent_at sold_at", order="title id")],
        ),
    ],
)
def test_indexes_for_rows_in_any_order(condition: Q, expected: list[Scan]) -> None:
    assert [scan_of(access) for access in sets(Book, conditions(condition))] == expected


@pytest.mark.parametrize(
    ("condition", "column", "expected"),
    [
        (Q(), "id", Scan(BY_ID, order="id")),
        (Q(id=1), "id", None),
        (Q(pages=3), "id", Scan(BY_PAGES, "pages", order="pages id")),
        (
            Q(shelf=1, pages=3),
            "id",
            Scan(BY_SHELF_AND_PAGES, "shelf_id pages", order="shelf_id pages id"),
        ),
        (Q(pages__in=[3, 4]), "id", Scan(BY_PAGES, "", "pages", "", "pages id")),
        (Q(shelf=1), "place", Scan(BY_PLACE, "shelf_id", order="shelf_id place")),
        (Q(shelf__in=[1, 2]), "place", Scan(BY_PLACE, "", "shelf_id", "", "shelf_id place")),
        (
            Q(shelf__in=[1, 2]) & Q(shelf__in=[2, 3]),
            "place",
            Scan(BY_PLACE, "", "shelf_id", "", "shelf_id place"),
        ),
        (Q(), "place", None),
        # Several rows of a value may have the same value in the column.
        (Q(), "shelf_id", None),
        (Q(shelf=1), "pages", None),
        # The index contains other rows.
        (Q(title="a"), "id", Scan(BY_ID, order="id")),
        (Q(sold_at=None), "lent_at", None),
    ],
)
def test_index_in_the_order_of_a_column(condition: Q, column: str, expected: Any) -> None:
    access = ordered_by(Book, conditions(condition), column)

    assert (access and scan_of(access)) == expected


@pytest.mark.parametrize(
    ("condition", "decided"),
    [
        (Q(), True),
        (Q(pages=3), True),
        (Q(pages=3, id__gt=1), True),
        (Q(pages=3, title="a"), False),
        (Q(pages=3) & ~Q(title="a"), False),
        (~Q(title="a"), False),
        (Q(pages=F("place")), False),
    ],
)
def test_conditions_that_a_scan_decides(condition: Q, decided: bool) -> None:
    given = conditions(condition)

    assert walk(Book, given, ["id"]).decides_all(given) is decided


@pytest.mark.parametrize(
    ("rows", "key", "is_forced"),
    [
        (Book._base_manager.filter(shelf=1), "place", True),
        (Book._base_manager.filter(shelf=1, pages=3), "id", True),
        # No other index has the order of the rest.
        (Chapter._base_manager.filter(kind=1, level=2), "number", False),
    ],
)
def test_order_that_includes_the_first_column(rows: Any, key: str, is_forced: bool) -> None:
    access = walk(rows.model, conditions_of(rows.query), [key])

    assert access.is_to_be_forced(rows.model) is is_forced


@pytest.mark.parametrize(
    ("condition", "is_single"),
    [
        (Q(isbn="a"), True),
        (Q(shelf=1, place=2), True),
        (Q(sold_at=None, lent_at=3), True),
        (Q(), False),
        (Q(shelf=1), False),
        (Q(shelf=1, place=None), False),
        (Q(sold_at=None, lent_at=None), False),
    ],
)
def test_scan_of_a_single_row(condition: Q, is_single: bool) -> None:
    assert walked(condition, "id").finds_single_row is is_single
