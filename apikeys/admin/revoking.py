"""Bulk revocation of keys or tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest
from django.template.response import TemplateResponse

from infra_service.lib.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from apikeys.actors import Actor


class RevokeSelected(ReadOnlyAdmin):
    """A list with an action that revokes the selected rows after a confirmation."""

    actions = ("revoke_selected",)

    def revoke(self, obj: Any, actor: Actor) -> str:
        """Revoke a credential and return a message."""
        raise NotImplementedError

    def _noun(self, number: int) -> str:
        return str(self.opts.verbose_name if number == 1 else self.opts.verbose_name_plural)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"apikeys.revoke_{self.opts.model_name}"))

    def response_action(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        """Run the action. PostgreSQL rejects a NUL, so an id with a NUL is malformed."""
        if "\0" in "".join(request.POST.getlist(ACTION_CHECKBOX_NAME)):
            raise BadRequest("NUL in an id")
        return super().response_action(request, *args, **options)

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Ask for confirmation, then revoke the selected credentials that are not yet revoked."""
        chosen = list(queryset.filter(revoked_at=None)[: self.list_per_page])
        if not chosen:
            messages.info(request, "All selected rows are already revoked.")
            return None
        if "confirmed" not in request.POST:
            context = {
                **self.admin_site.each_context(request),
                "title": f"Revoke {len(chosen)} {self._noun(len(chosen))}",
                "opts": self.opts,
                "chosen": chosen,
            }
            return TemplateResponse(request, "admin/apikeys/revoke_selected.html", context)
        actor = self.admin_site.actor(request)
        for credential in chosen:
            messages.success(request, self.revoke(credential, actor))
        return None
