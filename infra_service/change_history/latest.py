"""The latest changes of a state or a workload, for a section of its admin page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from infra_service.change_history.models import Change
from infra_service.change_history.signs import details, mark

if TYPE_CHECKING:
    import uuid

#: The maximum number of changes on the page. The list shows all changes.
SHOWN: Final = 5


def latest_changes(user: Any, kind: str, object_id: uuid.UUID) -> dict[str, Any] | None:
    """Return the section for a ``state`` or ``workload``; None without the view permission."""
    if not user.has_perm("change_history.view_change"):
        return None
    own = Change.objects.filter(**{f"{kind}_id": object_id})
    listed = reverse("admin:change_history_change_changelist")
    return {
        "template": "admin/change_history/latest.html",
        "url": f"{listed}?{urlencode({kind: str(object_id)})}",
        "shows_addresses": kind == "state",
        "rows": [
            {"change": change, "action": mark(change.action), "details": details(change)}
            for change in own.order_by("-id")[:SHOWN]
        ],
    }
