"""Admin columns for the scopes and bindings of keys, tokens and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.utils.html import format_html, format_html_join

from apikeys.bindings import EVERYWHERE
from infra_service.lib.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from infra_service.lib.admin.site import Names

#: The maximum number of names per kind in a list row. The object's page shows all names.
_IN_A_ROW: Final = 3


class BindingColumns(ReadOnlyAdmin):
    """Columns for a binding."""

    def heading(self, obj: Any) -> str:
        """Return only the name, because the page shows the id as a field."""
        return str(obj.name)

    def prepare_object(self, request: HttpRequest, obj: Any) -> None:
        """Look up the names for the binding."""
        self._name(request, [obj], None)

    def prepare_page(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Look up the names for the bindings of all rows, once per kind."""
        self._name(request, rows, _IN_A_ROW)

    def _name(self, request: HttpRequest, credentials: Sequence[Any], most: int | None) -> None:
        wanted: dict[str, set[str]] = {}
        for credential in credentials:
            for kind, ids in credential.binding.ids_by_kind.items():
                wanted.setdefault(kind, set()).update(ids[:most])
        user = request.user
        names = {kind: self.admin_site.names_of(kind, ids, user) for kind, ids in wanted.items()}
        for credential in credentials:
            credential.bound_names = names

    @admin.display(description="bound to")
    def bound_to(self, credential: Any) -> str:
        """Return the shortened binding for a list row."""
        return self._shown(credential, credential.bound_names, _IN_A_ROW)

    @admin.display(description="bound to")
    def shown_binding(self, credential: Any) -> str:
        """Return the full binding."""
        return self._shown(credential, credential.bound_names, None)

    def _shown(self, credential: Any, names: dict[str, Names], most: int | None) -> str:
        if credential.binding == EVERYWHERE:
            return "everywhere"
        lines = []
        for kind, ids in credential.binding.ids_by_kind.items():
            found = names.get(kind, {})
            lines += [(kind, self.admin_site.named(kind, one, found)) for one in ids[:most]]
            if len(ids) > len(ids[:most]):
                lines.append((f"{len(ids) - len(ids[:most])} more", ""))
        return format_html("{}", format_html_join("", "<div>{} {}</div>", lines))


class GrantColumns(BindingColumns):
    """Columns for a binding and scopes."""

    @admin.display(description="scopes")
    def shown_scopes(self, credential: Any) -> str:
        """Return all scopes, with the number of scopes that a list row hides."""
        scopes = credential.scopes
        shown = format_html_join(" ", '<code class="scope">{}</code>', ((one,) for one in scopes))
        if len(scopes) <= _IN_A_ROW + 1:
            return shown
        return format_html(
            '<span class="scopes" title="{}" data-more="{} more">{}</span>',
            ", ".join(scopes),
            len(scopes) - _IN_A_ROW,
            shown,
        )
