"""Read pages of a list with a bounded amount of work for any filter.

``read_page`` is the entry point for the API and the admin. ``conditions`` splits the WHERE clause
of a queryset, ``indexes`` finds suitable indexes, ``bounded_tables`` applies a LIMIT before the
conditions without an index, and ``semi_joins`` starts from the rows of another table.
"""

from infra_service.lib.database.bounded_pages.conditions import NamedBy
from infra_service.lib.database.bounded_pages.reading import Page, read_page

__all__ = ["NamedBy", "Page", "read_page"]
