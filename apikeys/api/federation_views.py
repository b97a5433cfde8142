"""Views of issuers and of the caller's trust policies."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys import actions
from apikeys.actors import Actor
from apikeys.api.federation_openapi import issuers_schema, trust_policies_schema
from apikeys.api.federation_serializers import (
    IssuerSerializer,
    TrialSerializer,
    TrustPolicySerializer,
)
from apikeys.api.filters import IssuerFilters, TrustPolicyFilters
from apikeys.authentication import caller_of
from apikeys.federation.errors import IssuerNotFound, TrustPolicyNotFound
from apikeys.models import Issuer, TrustPolicy
from apikeys.permissions import ANY_TOKEN
from apikeys.scopes import Scope
from infra_service.lib.api.fields import NothingSerializer
from infra_service.lib.api.idempotency import idempotent
from infra_service.lib.api.viewsets import ResourceViewSet

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from apikeys.querysets import TrustPolicyQuerySet

_ACTIONS: Final = ("list", "retrieve", "create", "partial_update", "disable")


@issuers_schema
class IssuerViewSet(ResourceViewSet[Issuer]):
    """Issuers, shared by all authors of policies."""

    queryset = Issuer.objects.all()
    serializer_class = IssuerSerializer
    filterset_class = IssuerFilters
    resource, resource_plural = "issuer", "issuers"
    searched_fields = ("kind", "name", "url", "created_at")
    not_found = IssuerNotFound
    token_kinds = ANY_TOKEN
    minted_only = True
    required_scopes = dict.fromkeys(_ACTIONS, Scope.FEDERATION_WRITE)

    @idempotent
    def create(self, request: Request) -> Response:
        """Register an issuer."""
        issuer = actions.create_issuer(fields=self.read_new(), actor=Actor.of(request))
        return self.answer(self.get_queryset().get(pk=issuer.pk), status=201)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change an issuer."""
        issuer = self.get_object()
        actions.change_issuer(
            issuer_id=issuer.pk, changes=self.read_changes(), actor=Actor.of(request)
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def disable(self, request: Request, **_path: str) -> Response:
        """Disable an issuer."""
        issuer = self.get_object()
        self.read_options(NothingSerializer)
        actions.disable_issuer(issuer_id=issuer.pk, actor=Actor.of(request))
        return self.answer(self.get_object())


@trust_policies_schema
class TrustPolicyViewSet(ResourceViewSet[TrustPolicy]):
    """The caller's trust policies within the caller's binding."""

    queryset = TrustPolicy.objects.all()
    serializer_class = TrustPolicySerializer
    filterset_class = TrustPolicyFilters
    resource, resource_plural = "trust_policy", "trust_policies"
    scoped_by = ("owner_id",)
    searched_fields = ("name", "created_at", "expires_at", "last_used_at")
    not_found = TrustPolicyNotFound
    token_kinds = ANY_TOKEN
    minted_only = True
    required_scopes = dict.fromkeys((*_ACTIONS, "test"), Scope.FEDERATION_WRITE)

    def get_queryset(self) -> QuerySet[TrustPolicy]:
        """Return the caller's policies, with their owner and issuer."""
        return self.own().select_related("owner", "issuer")

    def own(self) -> TrustPolicyQuerySet:
        caller = caller_of(self.request)
        policies: TrustPolicyQuerySet = TrustPolicy.objects.filter(owner=caller.user_id)
        return policies.inside(caller.binding)

    @idempotent
    def create(self, request: Request) -> Response:
        """Create a policy."""
        policy = actions.create_trust_policy(
            owner_id=caller_of(request).user_id, actor=Actor.of(request), **self.read_new()
        )
        return self.answer(self.get_queryset().get(pk=policy.pk), status=201)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change a policy."""
        policy = self.get_object()
        actions.change_trust_policy(
            policies=self.own(),
            policy_id=policy.pk,
            changes=self.read_changes(),
            actor=Actor.of(request),
        )
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def disable(self, request: Request, **_path: str) -> Response:
        """Disable a policy."""
        policy = self.get_object()
        self.read_options(NothingSerializer)
        actions.disable_trust_policy(policy=policy, actor=Actor.of(request))
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def test(self, request: Request, **_path: str) -> Response:  # noqa: ARG002 - the view's
        """Test whether an assertion would be accepted."""
        policy = self.get_object()
        trial = actions.try_trust_policy(policy=policy, **self.read_options(TrialSerializer))
        return Response(dataclasses.asdict(trial))
