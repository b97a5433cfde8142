"""Filters of the lists of keys, tokens, issuers and policies."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.db.models import Q
from django.utils import timezone

from apikeys.querysets import SOON, UNUSED_AFTER

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.querysets import CredentialQuerySet

#: Days without use after which a policy counts as unused.
_UNUSED_FOR: Final = dt.timedelta(days=90)


class StatusFilter(admin.SimpleListFilter):
    """A filter by the derived status. Each choice uses its own index.

    "Expiring" and "unused" exclude minted tokens, which expire within hours and are often unused.
    """

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("active", "Active"),
            ("owner", "Inactive or idle owner"),
            ("expiring", f"Expires within {SOON.days} days"),
            ("unused", f"Never used in {UNUSED_AFTER.days} days"),
            ("expired", "Expired"),
            ("revoked", "Revoked"),
            *model_admin.more_statuses,
        ]

    def queryset(self, _request: HttpRequest, queryset: Any) -> Any:
        credentials: CredentialQuerySet[Any] = queryset
        match self.value():
            case "active":
                found = credentials.usable()
            case "owner":
                found = credentials.refused_for_owner()
            case "expiring":
                found = credentials.issued().expiring()
            case "unused":
                found = credentials.issued().unused()
            case "expired":
                found = credentials.expired()
            case "revoked":
                found = credentials.revoked()
            case "ended" if self.value() in dict(self.lookup_choices):
                found = queryset.ended_with_origin()
            case _:
                found = credentials
        return found


class DisabledFilter(admin.SimpleListFilter):
    """A filter for enabled and disabled rows."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [("working", "Working"), ("disabled", "Disabled")]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "working":
                return queryset.filter(disabled_at=None)
            case "disabled":
                return queryset.filter(disabled_at__isnull=False)
        return queryset


class UseFilter(admin.SimpleListFilter):
    """A filter for unused policies."""

    title = "use"
    parameter_name = "use"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [("never", "Never used"), ("long", f"Not used for {_UNUSED_FOR.days} days")]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        before = timezone.now() - _UNUSED_FOR
        match self.value():
            case "never":
                return queryset.filter(disabled_at=None, last_used_at=None)
            case "long":
                unused = Q(last_used_at=None, created_at__lt=before)
                return queryset.filter(unused | Q(last_used_at__lt=before), disabled_at=None)
        return queryset
