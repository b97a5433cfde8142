"""What lists of keys and tokens are filtered by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from apikeys.querysets import SOON, UNUSED_AFTER

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apikeys.querysets import CredentialQuerySet


class StatusFilter(admin.SimpleListFilter):
    """By the status, which is derived; each choice is read in an index of its own.

    Minted tokens live for hours: that they end soon, or are not used, is no news.
    """

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("active", "Active"),
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
                found = credentials.active()
            case "expiring":
                found = credentials.issued().expiring(SOON)
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
