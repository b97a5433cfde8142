"""Values that admin pages take from their site, because an app supplies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.http import HttpRequest

    #: Names by id, as text.
    Names = Mapping[str, str]


class TrailedSite(AdminSite):
    """A site with an audit trail, which knows who acts, and what bindings name."""

    def actor(self, request: HttpRequest) -> Any:
        """Return who acts, for the actions that the pages call."""
        raise NotImplementedError

    def trail_url(self, object_id: str) -> str:
        """Return the address of what the trail tells of the object."""
        raise NotImplementedError

    def resources_of(self, events: Sequence[Any], user: Any) -> Mapping[Any, tuple[str, str]]:
        """Return name and page of what events are about, by the action's first word and the id."""
        raise NotImplementedError

    def names_of(self, kind: str, ids: Collection[str]) -> Names:
        """Return the names of what a binding can name: of a kind, and by its id."""
        raise NotImplementedError

    def named(self, kind: str, object_id: str, names: Names) -> str:
        """Return a link to one of them, with its name where there is one."""
        raise NotImplementedError

    def ids_of(self, kind: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the ids that names and ids stand for, and what is wrong with the others."""
        raise NotImplementedError
