"""Models with every kind of index, which no test creates as tables."""

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower


class Shelf(models.Model):
    class Meta:
        app_label = "page_indexes"  # not an installed app


class Book(models.Model):
    isbn = models.CharField(max_length=20, unique=True)
    shelf = models.ForeignKey(Shelf, models.CASCADE)
    title = models.CharField(max_length=20)
    pages = models.IntegerField(null=True)
    place = models.IntegerField(null=True)
    lent_at = models.IntegerField(null=True)
    sold_at = models.IntegerField(null=True)

    class Meta:
        app_label = "page_indexes"
        constraints: ClassVar = [
            models.CheckConstraint(name="book_titled", condition=~Q(title="")),
            models.UniqueConstraint(name="book_place", fields=["shelf", "place"]),
            models.UniqueConstraint(
                name="book_lent", fields=["lent_at"], condition=Q(sold_at=None)
            ),
            models.UniqueConstraint(Lower("title"), name="book_lower"),
        ]
        indexes: ClassVar = [
            models.Index(name="book_pages", fields=["-pages", "id"]),
            models.Index(name="book_shelf_pages", fields=["shelf", "pages", "id", "place"]),
            models.Index(
                name="book_unsold",
                fields=["title", "id"],
                condition=Q(sold_at__isnull=True, lent_at__isnull=False),
            ),
            # Without an effect:
            models.Index(Lower("title"), name="book_by_lower"),
            BrinIndex(name="book_brin", fields=["title"]),
            models.Index(name="book_or", fields=["title"], condition=Q(pages=None) | Q(place=None)),
            models.Index(name="book_not", fields=["title"], condition=~Q(sold_at=None)),
            models.Index(
                name="book_and_not", fields=["title"], condition=Q(sold_at=None) & ~Q(title="")
            ),
            models.Index(name="book_equal", fields=["title"], condition=Q(sold_at=None, title="a")),
        ]


class Chapter(models.Model):
    pk = models.CompositePrimaryKey("book_id", "number")
    book = models.ForeignKey(Book, models.CASCADE, db_index=False)
    number = models.IntegerField()
    kind = models.IntegerField()
    level = models.IntegerField()

    class Meta:
        app_label = "page_indexes"
        indexes: ClassVar = [models.Index(name="chapter_kind", fields=["kind", "level", "number"])]
