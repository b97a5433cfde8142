"""What the admin's pages ask their site, because the answer lies in an app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from django.http import HttpRequest


class TrailedSite(AdminSite):
    """A site with an audit trail, which knows who acts."""

    def actor(self, request: HttpRequest) -> Any:
        """Return who acts, for the actions that the pages call."""
        raise NotImplementedError

    def trail_url(self, object_id: str) -> str:
        """Return the address of the events of one object."""
        raise NotImplementedError
