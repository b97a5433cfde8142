"""Views of the caller's webhooks and their deliveries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ObjectDoesNotExist
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.grants import Default
from apikeys.permissions import ANY_TOKEN
from apikeys.scopes import Scope
from infra_service.lib.api.fields import NothingSerializer
from infra_service.lib.api.idempotency import idempotent
from infra_service.lib.api.viewsets import ResourceViewSet, by_id
from infra_service.webhooks import actions
from infra_service.webhooks.api.openapi import deliveries_schema, webhooks_schema
from infra_service.webhooks.api.serializers import DeliverySerializer, WebhookSerializer
from infra_service.webhooks.errors import DeliveryNotFound, WebhookNotFound
from infra_service.webhooks.filters import DeliveryFilters, WebhookFilters
from infra_service.webhooks.models import Delivery, WebhookEndpoint

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from infra_service.webhooks.models import WebhookEndpointQuerySet

#: A delivery's id, within the range of the column.
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def own_webhooks(request: Request) -> WebhookEndpointQuerySet:
    """Return the caller's webhooks within the caller's binding."""
    caller = caller_of(request)
    endpoints: WebhookEndpointQuerySet = WebhookEndpoint.objects.filter(owner=caller.user_id)
    return endpoints.inside(caller.binding)


@webhooks_schema
class WebhookViewSet(ResourceViewSet[WebhookEndpoint]):
    """The caller's webhooks within the caller's binding."""

    queryset = WebhookEndpoint.objects.all()
    serializer_class = WebhookSerializer
    filterset_class = WebhookFilters
    resource, resource_plural = "webhook", "webhooks"
    scoped_by = ("owner_id",)
    searched_fields = ("name", "created_at")
    not_found = WebhookNotFound
    token_kinds = ANY_TOKEN
    required_scopes = {
        "list": Scope.WEBHOOK_WRITE,
        "retrieve": Scope.WEBHOOK_WRITE,
        "create": Scope.WEBHOOK_WRITE,
        "partial_update": Scope.WEBHOOK_WRITE,
        "destroy": Scope.WEBHOOK_WRITE,
        "test": Scope.WEBHOOK_WRITE,
        "rotate_secret": Scope.WEBHOOK_WRITE,
    }

    def get_queryset(self) -> QuerySet[WebhookEndpoint]:
        """Return the caller's webhooks."""
        return own_webhooks(self.request)

    @idempotent
    def create(self, request: Request) -> Response:
        """Create a webhook. Only this response contains the secret."""
        fields = self.read_new()
        endpoint, secret = actions.create_endpoint(
            owner_id=caller_of(request).user_id,
            fields=fields,
            expires_at=fields.get("expires_at", Default.EXPIRY),
            actor=Actor.of(request),
        )
        return self.answer(endpoint, status=201, secret=secret)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change a webhook, or enable it again."""
        endpoint = self.get_object()
        actions.change_endpoint(
            endpoints=own_webhooks(request),
            endpoint_id=endpoint.pk,
            changes=self.read_changes(),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object())

    def destroy(self, request: Request, **_path: str) -> Response:
        """Delete a webhook and its deliveries."""
        actions.delete_endpoint(
            endpoints=own_webhooks(request),
            endpoint_id=self.get_object().pk,
            actor=Actor.of(request),
        )
        return Response(status=204)

    @action(detail=True, methods=["post"])
    @idempotent
    def test(self, request: Request, **_path: str) -> Response:
        """Send a message of type webhook.test."""
        endpoint = self.get_object()
        self.read_options(NothingSerializer)
        delivery = actions.send_test(endpoint=endpoint, actor=Actor.of(request))
        return Response({"delivery": DeliverySerializer(delivery).data})

    @action(detail=True, methods=["post"], url_path="rotate-secret")
    @idempotent
    def rotate_secret(self, request: Request, **_path: str) -> Response:
        """Replace the secret. The old secret also signs messages for a day."""
        endpoint = self.get_object()
        self.read_options(NothingSerializer)
        secret = actions.rotate_secret(
            endpoints=own_webhooks(request), endpoint_id=endpoint.pk, actor=Actor.of(request)
        )
        return self.answer(self.get_object(), secret=secret)


@deliveries_schema
class DeliveryViewSet(ResourceViewSet[Delivery]):
    """The deliveries of a webhook, newest first."""

    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilters
    resource, resource_plural = "delivery", "deliveries"
    page_key = ("-id",)
    scoped_by = ("endpoint_id",)
    searched_fields = ("status",)
    not_found = DeliveryNotFound
    token_kinds = ANY_TOKEN
    required_scopes = {"list": Scope.WEBHOOK_WRITE, "redeliver": Scope.WEBHOOK_WRITE}

    def get_queryset(self) -> QuerySet[Delivery]:
        """Return the deliveries of the webhook in the path.

        Raises:
            WebhookNotFound: the caller has no webhook with this id.
        """
        try:
            endpoint = by_id(own_webhooks(self.request), self.kwargs["webhook_id"])
        except ObjectDoesNotExist as error:
            raise WebhookNotFound from error
        return Delivery.objects.filter(endpoint_id=endpoint.pk).select_related("event", "endpoint")

    @action(detail=True, methods=["post"])
    @idempotent
    def redeliver(self, request: Request, **_path: str) -> Response:
        """Send the event again with the same webhook-id."""
        deliveries = self.get_queryset()
        number = self.kwargs["delivery_id"]
        delivery = deliveries.filter(pk=number).first() if _NUMBER.fullmatch(number) else None
        if delivery is None:
            raise DeliveryNotFound
        self.read_options(NothingSerializer)
        actions.redeliver(delivery=delivery, actor=Actor.of(request))
        return self.answer(delivery)
