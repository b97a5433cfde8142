"""Column types and expressions that Django does not have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class VerbatimJSONField(models.JSONField):
    """A JSON field that stores the original text. Queries cannot search it.

    PostgreSQL's ``jsonb`` sorts the keys of an object by their length; ``json`` keeps their order.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return ``json`` on PostgreSQL."""
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(
        self,
        value: Any,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 - Django's signature
        prepared: bool = False,  # noqa: ARG002, FBT001, FBT002 - Django's signature
    ) -> Any:
        """Return the value as compact JSON text."""
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Select the column as text: Django decodes it, so psycopg must not decode it first."""
        if compiler.connection.vendor == "postgresql":
            return f"{sql}::text", params
        return super().select_format(compiler, sql, params)


class JsonType(models.Func):
    """The JSON type of a column's value, such as object or array."""

    function = "JSONB_TYPEOF"
    template = "%(function)s(%(expressions)s::jsonb)"
    output_field = models.CharField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return the SQL for SQLite, which has different type names."""
        template = "%(function)s(%(expressions)s)"
        return self.as_sql(compiler, connection, "JSON_TYPE", template, **context)
