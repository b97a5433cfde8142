from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db.models import Model
from rest_framework.exceptions import APIException
from rest_framework.filters import BaseFilterBackend
from rest_framework.status import HTTP_400_BAD_REQUEST

from filterlang.compiler import compile_filter
from filterlang.describe import describe, described_fields
from filterlang.errors import Code, FilterError
from filterlang.grammar import MAX_LENGTH

if TYPE_CHECKING:
    # Only for type checks, because the settings name this module, and DRF's views import the
    # modules that the settings name.
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView

PARAMETER: Final = "filter"

M = TypeVar("M", bound=Model)
Row = TypeVar("Row")


class InvalidFilter(APIException):
    meaning = (
        "The filter is invalid. ``metadata`` contains the error's code, position and suggestion, "
        "if any."
    )
    status_code = HTTP_400_BAD_REQUEST
    default_code = "INVALID_FILTER"

    def __init__(self, error: FilterError) -> None:
        super().__init__(str(error))
        self.metadata = {"code": str(error.code), "position": str(error.position)}
        if error.suggestion:
            self.metadata["suggestion"] = error.suggestion


class FilterLanguageBackend(BaseFilterBackend):
    """A filter backend that applies ``filter=`` to views with a ``filterset_class``.

    The optional method ``prepared`` of the view rewrites the condition before the query.
    """

    def filter_queryset(
        self, request: "Request", queryset: "QuerySet[M, Row]", view: "APIView"
    ) -> "QuerySet[M, Row]":
        """Return the rows that match the filter. Raise ``InvalidFilter`` if it is invalid."""
        filterset = getattr(view, "filterset_class", None)
        texts = request.query_params.getlist(PARAMETER)
        if filterset is None or not texts:
            return queryset
        if len(texts) > 1:
            # Each filter alone would show rows that the other filter excludes.
            raise InvalidFilter(
                FilterError(Code.SYNTAX, 0, "expected one filter", "join the filters with AND")
            )
        try:
            condition = compile_filter(filterset, texts[0])
        except FilterError as error:
            raise InvalidFilter(error) from error
        prepared = getattr(view, "prepared", None)
        return queryset.filter(condition if prepared is None else prepared(condition))

    def get_schema_operation_parameters(self, view: "APIView") -> list[dict[str, Any]]:
        """Return the OpenAPI parameter object of ``filter``, described from the field set."""
        filterset = getattr(view, "filterset_class", None)
        if filterset is None:
            return []
        return [
            {
                "name": PARAMETER,
                "in": "query",
                "required": False,
                "description": describe(filterset),
                "schema": {"type": "string", "maxLength": MAX_LENGTH},
                "x-filter-fields": described_fields(filterset),
            }
        ]
