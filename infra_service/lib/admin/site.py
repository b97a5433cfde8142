"""Values that admin pages read from their site, because an app supplies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.http import HttpRequest

    #: Names by id, as text.
    Names = Mapping[str, str]


class AuditedSite(AdminSite):
    """An admin site with an audit log, the acting user and the names of bound objects."""

    def actor(self, request: HttpRequest) -> Any:
        """Return the actor of the request, as the actions expect it."""
        raise NotImplementedError

    def audit_log_url(self, object_id: str) -> str:
        """Return the URL of the object's audit log."""
        raise NotImplementedError

    def resources_of(self, events: Sequence[Any], user: Any) -> Mapping[Any, tuple[str, str]]:
        """Return name and URL of the events' resources, by the action's first word and the id."""
        raise NotImplementedError

    def ids_named(self, text: str, user: Any) -> Sequence[str]:
        """Return the ids of the resources with this text in their name that the user may view."""
        raise NotImplementedError

    def names_of(self, kind: str, ids: Collection[str]) -> Names:
        """Return the names of a kind of objects that bindings refer to, by id."""
        raise NotImplementedError

    def named(self, kind: str, object_id: str, names: Names) -> str:
        """Return a link to such an object, labelled with its name if the name is known."""
        raise NotImplementedError

    def latest_changes(self, user: Any, kind: str, object_id: Any) -> Mapping[str, Any] | None:
        """Return the latest changes of a ``state`` or ``workload``, and their template."""
        raise NotImplementedError

    def ids_of(self, kind: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the ids for names or ids, and an error message for each invalid text."""
        raise NotImplementedError
