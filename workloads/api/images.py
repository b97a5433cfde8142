"""The images that run in the visible clusters, with the number of their workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum
from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from filterlang.rewriting import rewritten
from infra_service.lib.api.pagination import KeysetPagination, PageRequest
from infra_service.lib.api.viewsets import ResourceViewSet
from infra_service.lib.database import replica
from infra_service.lib.database.bounded_pages.bounded_tables import (
    from_statement,
    rows_of,
    statement_of,
)
from infra_service.lib.database.bounded_pages.conditions import conditions_of
from infra_service.lib.database.bounded_pages.indexes import walk
from infra_service.lib.database.snapshot import one_snapshot
from workloads.api.filters import ImageFilters, with_full_repository
from workloads.api.serializers import ImageSerializer
from workloads.api.workloads_openapi import images_schema
from workloads.kubernetes.images import registry_of
from workloads.models.images import IMAGE, ClusterImage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Q, QuerySet
    from rest_framework.request import Request

    from workloads.models.images import ClusterImageQuerySet

#: The maximum number of rows read for a page. An image has one row per cluster.
MOST_ROWS: Final = 20_000
_ORDER: Final = (*IMAGE, "cluster_id")
#: The columns of a covering index, so that the table is not read.
_READ: Final = (*_ORDER, "workloads")
_SUMS: Final[dict[str, Any]] = {
    "in_workloads": Sum("workloads"),
    "in_clusters": Count("cluster_id"),
}


def read_images(
    rows: QuerySet[ClusterImage, Any], position: Sequence[Any] | None, size: int
) -> tuple[list[dict[str, Any]], Sequence[str] | None]:
    """Return up to ``size`` images after a position, and the position of the next page.

    Read at most ``MOST_ROWS`` rows. A page may therefore be short even if more pages follow.
    """
    access = walk(ClusterImage, conditions_of(rows.query), _ORDER)
    after = None if position is None else (IMAGE, position)
    piece = from_statement(rows, *statement_of(access, rows, MOST_ROWS, _READ, after))
    with one_snapshot(rows.db):  # see ``read_page``
        found = list(piece.values(*IMAGE).annotate(**_SUMS).order_by(*IMAGE)[: size + 1])
        if len(found) > size:
            return found[:size], _place(found[size - 1])
        ends = rows_of(access, rows, IMAGE, after)[MOST_ROWS - 1 : MOST_ROWS]
        end = next(iter(ends), None)
        if end is None:
            return found, None
        if found and _place(found[-1]) == _place(end):
            # ``MOST_ROWS`` may have omitted other clusters of this image.
            found[-1:] = rows.filter(**end).values(*IMAGE).annotate(**_SUMS).order_by(*IMAGE)
    return found, _place(end)


def _place(image: dict[str, Any]) -> list[str]:
    return [image[name] for name in IMAGE]


class ImagePagination(KeysetPagination):
    """Pagination of images. The counts of an image are sums over the rows of the image."""

    takes_order = False

    def answer(self, queryset: QuerySet[Any, Any], request: Request, view: Any) -> Response:
        """Respond with a page of images and the token of the next page.

        Raises:
            InvalidParameter, InvalidPageToken: see ``PageRequest``.
        """
        page_request = PageRequest.read(request, view, {len(IMAGE)})
        found, end = replica.read(
            lambda alias: read_images(
                queryset.using(alias), page_request.position, page_request.size
            )
        )
        images = [{**row, "registry": registry_of(row["repository"])} for row in found]
        shown = view.get_serializer(images, many=True).data
        token = "" if end is None else page_request.token(*end)
        return Response({view.resource_plural: shown, "next_page_token": token})


@images_schema
class ImageViewSet(ResourceViewSet[ClusterImage]):
    """The viewset of images, ordered by repository, tag and digest."""

    queryset = ClusterImage.objects.all()
    serializer_class = ImageSerializer
    filterset_class = ImageFilters
    pagination_class = ImagePagination
    resource, resource_plural = "image", "images"
    page_key = IMAGE
    searched_fields = ("tag",)
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.CLUSTER_READ}

    def get_queryset(self) -> ClusterImageQuerySet:
        return ClusterImage.objects.inside(caller_of(self.request).binding)

    def prepared(self, condition: Q) -> Q:
        return rewritten(condition, with_full_repository)
