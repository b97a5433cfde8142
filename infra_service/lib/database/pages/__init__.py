"""Reading a page of a list with a bound on the rows that PostgreSQL or SQLite looks at.

``read_page`` is the one way in, for the API and the admin. ``conditions`` takes a queryset's WHERE
apart, ``indexes`` says what the model's indexes can do for it, ``fences`` puts a LIMIT below the
conditions that no index decides, and ``naming`` comes from the rows of another table.
"""

from infra_service.lib.database.pages.conditions import NamedBy
from infra_service.lib.database.pages.reading import Page, read_page

__all__ = ["NamedBy", "Page", "read_page"]
