"""Views of the caller's API keys and access tokens, the caller, and the audit log."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rest_framework.decorators import action
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import APIView

from apikeys import actions, tokens
from apikeys.actors import Actor
from apikeys.api.filters import AccessTokenFilters, ApiKeyFilters, AuditEventFilters
from apikeys.api.openapi import (
    access_tokens_schema,
    api_keys_schema,
    audit_events_schema,
    whoami_schema,
)
from apikeys.api.serializers import (
    AccessTokenSerializer,
    ApiKeySerializer,
    AuditEventSerializer,
    CallerSerializer,
    OwnerSerializer,
    RotationSerializer,
)
from apikeys.authentication import caller_of, token_of
from apikeys.bindings import EVERYWHERE
from apikeys.errors import (
    AccessTokenNotFound,
    AddressNotAllowed,
    ApiKeyNotFound,
    AuditLogNotFound,
    CredentialsInvalid,
)
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.permissions import ACCESS_TOKENS, ANY_TOKEN, API_KEYS, demand_kind
from apikeys.scopes import Scope, with_included
from apikeys.tokens import TokenKind
from infra_service.lib.api.fields import NothingSerializer
from infra_service.lib.api.idempotency import idempotent, stored_answer
from infra_service.lib.api.throttling import RateLimited, count_failure
from infra_service.lib.api.viewsets import ListView, ResourceViewSet

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from apikeys.querysets import AccessTokenQuerySet, ApiKeyQuerySet


@api_keys_schema
class ApiKeyViewSet(ResourceViewSet[ApiKey]):
    """The caller's API keys within the caller's binding."""

    queryset = ApiKey.objects.all()
    serializer_class = ApiKeySerializer
    filterset_class = ApiKeyFilters
    resource, resource_plural = "api_key", "api_keys"
    scoped_by = ("created_by_id",)
    other_keys = (("last_used_at", "id"),)
    moving_orders = ("last_used_at",)
    searched_fields = (
        "status", "unusable_reason", "name", "scopes", "made_by", "created_at", "expires_at",
    )  # fmt: skip
    not_found = ApiKeyNotFound
    token_kinds = ANY_TOKEN
    minted_only = True
    required_scopes = {
        "list": Scope.APIKEY_READ,
        "retrieve": Scope.APIKEY_READ,
        "create": Scope.APIKEY_WRITE,
        "partial_update": Scope.APIKEY_WRITE,
        "rotate": Scope.APIKEY_WRITE,
        "revoke": Scope.APIKEY_WRITE,
    }

    def get_queryset(self) -> QuerySet[ApiKey]:
        """Return the caller's keys, with their status and their creator."""
        return self.own().with_status().with_searched().select_related("created_by")

    def handle_exception(self, exc: Exception) -> Response:
        """Return an error, or the stored response if a client retries a completed rotation."""
        try:
            stored = self._answer_to_rotation() if isinstance(exc, CredentialsInvalid) else None
        except APIException as error:
            exc, stored = error, None
        return super().handle_exception(exc) if stored is None else stored

    def _answer_to_rotation(self) -> Response | None:
        token = token_of(self.request)
        if self.action != "rotate" or tokens.kind_of(token) is not TokenKind.API_KEY:
            return None
        digest = tokens.digest(token)
        rotated = (
            ApiKey.objects.usable().filter(pk=self.kwargs["id"], previous_digest=digest).first()
        )
        if rotated is None or Scope.APIKEY_WRITE not in with_included(rotated.scopes):
            return None
        if not rotated.grant.networks.allows(self.request.META.get("REMOTE_ADDR", "")):
            raise AddressNotAllowed(rotated.pk)
        # The replaced secret may have leaked, so its requests must not exhaust the rate limit of
        # the key. They count as failed authentications instead.
        if exceeded := count_failure(self.request._request):
            raise RateLimited(exceeded)
        return stored_answer(self.request, digest)

    def own(self) -> ApiKeyQuerySet:
        return ApiKey.objects.visible_to(caller_of(self.request))

    @idempotent
    def create(self, request: Request) -> Response:
        """Create a key."""
        key, secret = actions.create_api_key(
            user_id=caller_of(request).user_id, actor=Actor.of(request), **self.read_new()
        )
        return self.answer(self.get_queryset().get(pk=key.pk), status=201, secret=secret)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change a key."""
        key = self.get_object()
        actions.change_api_key(
            keys=self.own(), key_id=key.pk, changes=self.read_changes(), actor=Actor.of(request)
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    @idempotent
    def rotate(self, request: Request, **_path: str) -> Response:
        """Replace the secret of a key."""
        key = self.get_object()
        options = self.read_options(RotationSerializer)
        secret = actions.rotate_api_key(
            keys=self.own(),
            key_id=key.pk,
            grace_period=options.get("grace_period") or dt.timedelta(0),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object(), secret=secret)

    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, **_path: str) -> Response:
        """Revoke a key."""
        key = self.get_object()
        self.read_options(NothingSerializer)
        revoked = actions.revoke_api_key(key=key, actor=Actor.of(request))
        return self.answer(self.get_object(), descendants_revoked=max(revoked - 1, 0))


@access_tokens_schema
class AccessTokenViewSet(ResourceViewSet[AccessToken]):
    """The caller's access tokens, minted or issued, within the caller's binding."""

    queryset = AccessToken.objects.all()
    serializer_class = AccessTokenSerializer
    filterset_class = AccessTokenFilters
    resource, resource_plural = "access_token", "access_tokens"
    scoped_by = ("created_by_id",)
    other_keys = (("last_used_at", "id"),)
    moving_orders = ("last_used_at",)
    searched_fields = (
        "status", "unusable_reason", "name", "scopes", "kind", "created_at", "expires_at",
    )  # fmt: skip
    not_found = AccessTokenNotFound
    token_kinds = ANY_TOKEN
    minted_only = True
    required_scopes = {
        "list": Scope.APIKEY_READ,
        "retrieve": Scope.APIKEY_READ,
        "create": Scope.APIKEY_WRITE,
        "revoke": Scope.APIKEY_WRITE,
    }

    def get_queryset(self) -> QuerySet[AccessToken]:
        """Return the caller's tokens, with their status and their creator."""
        tokens: AccessTokenQuerySet = AccessToken.objects.visible_to(caller_of(self.request))
        return tokens.with_status().with_searched().select_related("created_by")

    @idempotent
    def create(self, request: Request) -> Response:
        """Mint a token from the calling key."""
        demand_kind(request, API_KEYS)
        fields = self.read_new()
        token, secret = actions.mint_access_token(
            caller=caller_of(request),
            actor=Actor.of(request),
            **{**fields, "kind": TokenKind[fields["kind"]]},
        )
        return self.answer(self.get_queryset().get(pk=token.pk), status=201, secret=secret)

    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, **_path: str) -> Response:
        """Revoke a token."""
        token = self.get_object()
        self.read_options(NothingSerializer)
        revoked = actions.revoke_access_token(token=token, actor=Actor.of(request))
        return self.answer(self.get_object(), descendants_revoked=max(revoked - 1, 0))


@whoami_schema
class WhoAmIView(APIView):
    http_method_names = ["get", "head"]
    token_kinds = ANY_TOKEN
    required_scopes = {"GET": None}

    def get(self, request: Request) -> Response:
        """Return the caller: the token, its grant, and its owner."""
        caller = caller_of(request)
        user = User.objects.get(pk=caller.user_id)
        answer = {"caller": CallerSerializer(caller).data, "user": OwnerSerializer(user).data}
        return Response(answer)


@audit_events_schema
class AuditEventListView(ListView[AuditEvent]):
    """The audit log, newest first."""

    http_method_names = ["get", "head"]
    queryset = AuditEvent.objects.all()
    serializer_class = AuditEventSerializer
    filterset_class = AuditEventFilters
    resource_plural = "audit_events"
    page_key = ("-occurred_at", "-id")
    searched_fields = ("actor_name", "trace_id")
    token_kinds = ACCESS_TOKENS
    required_scopes = {"GET": Scope.AUDIT_READ}

    def get(self, request: Request) -> Response:
        """Return a page of the audit log."""
        return self.list(request)

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """Return the audit log. A bound token has no access, because the log covers all resources.

        Raises:
            AuditLogNotFound: the token is bound.
        """
        if caller_of(self.request).binding != EVERYWHERE:
            raise AuditLogNotFound
        return super().get_queryset()
