"""The interface of the admin site, which a subclass implements with data from the apps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.http import HttpRequest

    #: Names by id, as text.
    Names = Mapping[str, str]


class AuditedSite(AdminSite):
    """An admin site that provides the audit log, the actor and the names of objects."""

    def actor(self, request: HttpRequest) -> Any:
        """Return the actor of the request, for actions."""
        raise NotImplementedError

    def audit_log_url(self, object_id: str) -> str:
        """Return the URL of the object's audit log."""
        raise NotImplementedError

    def resources_of(self, events: Sequence[Any], user: Any) -> Mapping[Any, tuple[str, str]]:
        """Return the names and URLs of the events' resources, by kind and id."""
        raise NotImplementedError

    def ids_named(self, text: str, user: Any) -> Sequence[str]:
        """Return the ids of resources with this text in their names that the user may view."""
        raise NotImplementedError

    def names_of(self, kind: str, ids: Collection[str], user: Any) -> Names:
        """Return the names of objects of a kind, such as ``component``, by id.

        Return no names if the user may not view objects of this kind.
        """
        raise NotImplementedError

    def named(self, kind: str, object_id: str, names: Names) -> str:
        """Return a link to an object, with its name as the label if the name is known."""
        raise NotImplementedError

    def latest_changes(self, user: Any, kind: str, object_id: Any) -> Mapping[str, Any] | None:
        """Return the latest changes of a ``state`` or ``workload``, and their template, or None."""
        raise NotImplementedError

    def ids_of(self, kind: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the ids of objects given by name or id, and an error for each invalid text."""
        raise NotImplementedError
