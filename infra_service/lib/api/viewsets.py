"""The base classes of viewsets: wrapper, update mask, paths and responses.

Requests and responses wrap a resource in its name (``{"api_key": {…}}``). Requests may omit the
wrapper. A view declares ``resource``, ``resource_plural`` (the name of its list), ``page_key``
(the unique columns that order the list) and ``not_found``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, UUIDField
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import ViewSetMixin

from infra_service.lib.api import masks
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.api.suggestions import did_you_mean

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer, Serializer

M = TypeVar("M", bound=Model)

#: The maximum number of characters of an id in an error.
_MOST_OF_ID: Final = 100


class ResourceRouter(SimpleRouter):
    """A router with an optional trailing slash, and ``@action`` methods as ``…/{id}:name``."""

    routes = [
        route._replace(url=route.url.replace("/{url_path}", ":{url_path}"))
        for route in SimpleRouter.routes
    ]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False)
        self.trailing_slash = "/?"


class ListView(GenericAPIView[M]):
    """A view with a paginated list of rows."""

    def list(self, request: Request, **_path: str) -> Response:
        """Return a page of the rows that match the filter."""
        paginator: Any = self.paginator
        answer: Response = paginator.answer(
            self.filter_queryset(self.get_queryset()), request, self
        )
        return answer


class ResourceViewSet(ViewSetMixin, ListView[M]):
    """A viewset with the methods list and retrieve. Views add other methods."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    resource: ClassVar[str]
    resource_plural: ClassVar[str]
    page_key: ClassVar[tuple[str, ...]] = ("id",)
    #: Alternative orders, each unique and with an index like ``page_key``.
    other_keys: ClassVar[tuple[tuple[str, ...], ...]] = ()
    #: The orders, named after their first columns, in which an item may move.
    moving_orders: ClassVar[tuple[str, ...]] = ()
    #: Columns to which ``get_queryset`` assigns a value. Indexes may begin with these columns.
    scoped_by: ClassVar[tuple[str, ...]] = ()
    #: Filterable fields without an index, which are tested on a limited number of rows at a time.
    searched_fields: ClassVar[tuple[str, ...]] = ()
    not_found: ClassVar[type[NotFound]] = NotFound
    names_missing: ClassVar[bool] = False
    lookup_field = "id"
    # Excludes the colon, which precedes the name of a method, and characters that databases reject.
    lookup_value_regex = "[0-9A-Za-z._~-]+"

    def retrieve(self, _request: Request, **_path: str) -> Response:
        """Return a resource."""
        return self.answer(self.get_object())

    def get_object(self) -> M:
        """Return the resource with the id in the path, from ``get_queryset``.

        Raises:
            NotFound: the resource does not exist, or the id is malformed. See ``not_found``.
        """
        given = self.kwargs[self.lookup_field]
        try:
            return by_id(self.get_queryset(), given)
        except ObjectDoesNotExist as error:
            raise self.missing(given) from error

    def missing(self, given: str) -> NotFound:
        """Return the error for a missing resource.

        The error for a resource with secrets does not repeat the id, which may be a secret.
        """
        if not self.names_missing:
            return self.not_found()
        return self.not_found(f'The {self.resource} "{given[:_MOST_OF_ID]}" does not exist.')

    def answer(
        self, instance: M, *, status: int = 200, secret: str | None = None, **beside: Any
    ) -> Response:
        """Respond with the wrapped resource, a new secret and additional fields next to it."""
        body: dict[str, Any] = {self.resource: self.get_serializer(instance).data, **beside}
        if secret is None:
            return Response(body, status)
        return Response({**body, "secret": secret}, status, headers={"Cache-Control": "no-store"})

    def read_new(self) -> dict[str, Any]:
        """Return the validated fields of a resource to be created."""
        fields, path = _unwrap(_body(self.request), self.resource)
        return _validated(self.get_serializer(data=fields), path)

    def read_changes(self) -> dict[str, Any]:
        """Return the validated fields that a PATCH changes, selected by its mask or its body."""
        body = _body(self.request)
        blank: Any = self.get_serializer()
        known = blank.fields
        mask = masks.read_mask(body, self.request.query_params, known)
        unmasked = {name: value for name, value in body.items() if name not in masks.NAMES}
        fields, path = _unwrap(unmasked, self.resource)
        if fields and all(name in known and known[name].read_only for name in fields):
            raise ValidationError({path: [_output_only(name) for name in fields]})
        data = masks.select(fields, mask, known)
        return _validated(self.get_serializer(data=data, partial=True), path)

    def read_options(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """Return the validated body, without a wrapper, of a method such as ``:rotate``."""
        return _validated(serializer(data=_body(self.request)), "")


def by_id(queryset: QuerySet[M], text: str) -> M:
    """Return the row with the id in a path. UUIDs must be in canonical form.

    Raises:
        ObjectDoesNotExist: the row does not exist, or the id is invalid.
    """
    key = parse_uuid(text) if isinstance(queryset.model._meta.pk, UUIDField) else text
    if key is None:
        raise ObjectDoesNotExist
    return queryset.get(pk=key)


def _body(request: Request) -> dict[str, Any]:
    body = request.data
    if not isinstance(body, Mapping):
        raise _not_an_object("")
    return dict(body)


def _unwrap(body: Mapping[str, Any], resource: str) -> tuple[Mapping[str, Any], str]:
    """Return the fields of the resource, and their path for errors."""
    if resource not in body:
        return body, "" if body else resource
    fields = body[resource]
    if not isinstance(fields, Mapping):
        raise _not_an_object(resource)
    unknown = [name for name in body if name != resource]
    if unknown:
        guess = did_you_mean(unknown[0], (resource, *masks.NAMES))
        raise ValidationError({unknown[0]: [ErrorDetail(f"Unknown field{guess}", "unknown_field")]})
    return fields, resource


def _output_only(name: str) -> ErrorDetail:
    return ErrorDetail(
        f"{name} is output-only, and the request does not change any other field.", "output_only"
    )


def _validated(serializer: BaseSerializer[Any], path: str) -> dict[str, Any]:
    if not serializer.is_valid():
        errors: Any = serializer.errors
        raise ValidationError({path: errors} if path else errors)
    validated: dict[str, Any] = serializer.validated_data
    return validated


def _not_an_object(path: str) -> ValidationError:
    return ValidationError({path: [ErrorDetail("Not a JSON object.", "invalid")]})
