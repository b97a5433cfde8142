"""Pages of a list with a bounded amount of work, whatever the filters match.

``read_page`` is the entry point of the API and the admin. ``conditions`` splits a queryset's WHERE
clause, ``indexes`` finds the indexes that serve it, ``bounded_tables`` adds a LIMIT below the
conditions without an index, and ``semi_joins`` starts from the rows of another table.
"""

from infra_service.lib.database.bounded_pages.conditions import NamedBy
from infra_service.lib.database.bounded_pages.reading import Page, read_page

__all__ = ["NamedBy", "Page", "read_page"]
