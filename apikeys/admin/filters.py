"""What lists of keys and tokens are filtered by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from apikeys.querysets import SOON

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apikeys.querysets import CredentialQuerySet


class StatusFilter(admin.SimpleListFilter):
    """By the status, which is derived; each choice is read in an index of its own."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices."""
        return [
            ("active", "Active"),
            ("expiring", f"Expires within {SOON.days} days"),
            ("expired", "Expired"),
            ("revoked", "Revoked"),
            *model_admin.more_statuses,
        ]

    def queryset(self, _request: HttpRequest, queryset: Any) -> Any:
        """Return those of the chosen status."""
        credentials: CredentialQuerySet[Any] = queryset
        match self.value():
            case "active":
                return credentials.active()
            case "expiring":
                return credentials.expiring(SOON)
            case "expired":
                return credentials.expired()
            case "revoked":
                return credentials.revoked()
            case "ended" if self.value() in dict(self.lookup_choices):
                return queryset.ended_with_key()
        return credentials
