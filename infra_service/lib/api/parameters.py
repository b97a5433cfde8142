"""Reject invalid query parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import APIException

from infra_service.lib.api.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.http import QueryDict


class InvalidParameter(APIException):
    meaning = "A path or query parameter is unknown, repeated, out of range or malformed."
    status_code = 400
    default_code = "INVALID_FIELDS"

    def __init__(self, field: str, description: str, reason: str = "INVALID_FORMAT") -> None:
        super().__init__(f"{field}: {description}")
        self.field_violations = [{"field": field, "description": description, "reason": reason}]


def refuse_unknown(parameters: QueryDict, known: Collection[str]) -> None:
    """Reject unknown parameters. Ignoring a misspelt filter would return too many items.

    Raises:
        InvalidParameter: a parameter is unknown or repeated.
    """
    for name, values in parameters.lists():
        if name not in known:
            names = sorted(known)
            guess = did_you_mean(name, names) or f"; known parameters are {', '.join(names)}"
            raise InvalidParameter(name[:64], f"Unknown parameter{guess}", "UNKNOWN_PARAMETER")
        if len(values) > 1:
            raise InvalidParameter(name, "Given more than once.", "DUPLICATE")
