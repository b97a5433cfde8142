"""The admin of states: search, force-unlock, freeze, restore, delete and undelete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin, messages
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.timesince import timesince
from rest_framework.exceptions import APIException

from infra_service.lib.admin import ReadOnlyAdmin, object_tool
from infra_service.lib.admin.templatetags.moments import relative
from states.actions import freezing, history, locks
from states.admin import comparison
from states.admin.filters import EngineFilter, StatusFilter
from states.admin.forms import (
    LAST_NUMBER,
    DeleteForm,
    ForceUnlockForm,
    FreezeForm,
    RestoreForm,
    UnfreezeForm,
)
from states.admin.search import search
from states.admin.values import MOST_ROWS
from states.admin.versions import VersionPages
from states.lock_holders import holder_of, is_writable
from states.models import State, StateVersion
from states.models.engines import Engine
from states.targets import StateTarget

if TYPE_CHECKING:
    import datetime as dt

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.actors import Actor


_VERSION_STORED: Final = "Another version was stored"
_FREEZE_CHANGED: Final = "The freeze was changed"


def _version(state: State) -> int:
    return state.version_number


def _freeze(state: State) -> dt.datetime | None:
    return state.frozen_at


@admin.register(State)
class StateAdmin(VersionPages, ReadOnlyAdmin):
    """The admin of states, most recently changed first."""

    when_empty = "Terraform's first push or lock at an address registers a state."
    list_display = (
        "component_name", "environment", "lock", "checks", "written_by", "serial", "size",
        "changed", "application",
    )  # fmt: skip
    orders: ClassVar[Any] = {
        "changed": ("updated_at", "id"),
        "serial": ("serial", "id"),
        "size": ("size_bytes", "id"),
    }
    opening_order = "-changed"
    list_select_related = ()  # prevents a join that Django would add
    list_filter = (StatusFilter, EngineFilter)
    search_fields = ("id",)
    search_help_text = (
        "Part of the name of a component, environment or application, or an id. Several words "
        "narrow the search; put a name with spaces in quotes."
    )
    fieldsets = (
        (None, {"fields": (
            "component", "environment", "application", "lock", "checks", "written_by", "serial",
            "size", "updated_at", "deleted_at",
        )}),
        ("Identity", {"classes": ("collapse",), "fields": ("id", "lineage", "md5", "created_at")}),
    )  # fmt: skip
    tools = (
        "force_unlock",
        "freeze",
        "change_freeze",
        "unfreeze",
        "restore_version",
        "delete_state",
        "undelete",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[State]:
        """Return all states. Separate queries fetch the catalogue entries of a page.

        With a join, the planner could read all components instead of a page.
        """
        around = ("component", "environment", "application")
        return super().get_queryset(request).prefetch_related(*around)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[State], search_term: str
    ) -> tuple[QuerySet[State], bool]:
        """Return the states that match the words."""
        found = search(search_term)
        for note in found.notes:
            messages.warning(request, note)
        return queryset.filter(found.condition), False

    @admin.display(description="component")
    def component_name(self, state: State) -> str:
        """Return the name of the component."""
        return str(state.component)

    @admin.display(description="size")
    def size(self, state: State) -> str | None:
        """Return the human-readable size of the document."""
        return None if state.size_bytes is None else filesizeformat(state.size_bytes)

    @admin.display(description="changed")
    def changed(self, state: State) -> str:
        """Return the time since the last change."""
        return relative(state.updated_at)

    @admin.display(description="lock")
    def lock(self, state: State) -> str | None:
        """Return the freeze and the owner of the lock, each with its age."""
        badges = []
        if state.frozen_at is not None:
            sign = "error" if state.is_overdue else "lost"
            age = timesince(state.frozen_at, depth=1)
            badges.append((sign, state.freeze_reason, f"frozen for {age} by {state.frozen_by}"))
        if holder := holder_of(state):
            sign = "error" if holder.is_stale else "warning"
            age = timesince(holder.since, depth=1)
            badges.append((sign, _holder(state), f"locked for {age} by {holder.who}"))
        badge = '<span class="status status-{}" title="{}">{}</span>'
        return format_html_join(" ", badge, badges) or None

    @admin.display(description="checks")
    def checks(self, state: State) -> str | None:
        """Return the number of failing checks, with their addresses."""
        if not state.failing_checks:
            return None
        number = len(state.failing_checks)
        badge = '<span class="status status-error" title="{}">{} failing</span>'
        return format_html(badge, ", ".join(state.failing_checks), number)

    @admin.display(description="engine")
    def written_by(self, state: State) -> str | None:
        """Return the engine, and whether it encrypted the document."""
        if state.engine is None:
            return None
        label = Engine(state.engine).label
        return f"{label}, encrypted" if state.is_client_encrypted else label

    @object_tool(
        label="Force-unlock",
        permission="states.force_unlock_state",
        question="The service will refuse the next write by the lock's owner. Make sure that the "
        "owner's operation has stopped.",
        form=ForceUnlockForm,
        initial=lambda state: {"holder": _holder(state)},
        offered=lambda state: state.lock_id is not None,
        displayed=lambda state: state.lock_id,
        change="Another lock was acquired",
        destructive=True,
    )
    def force_unlock(self, state: State, actor: Actor, *, reason: str, check: Any) -> str:
        """Release the displayed lock."""
        check(state)
        locks.force_unlock(
            target=StateTarget.of(state), reason=reason, lock_id=state.lock_id, actor=actor
        )
        return "Lock released."

    @object_tool(
        label="Freeze",
        permission="states.freeze_state",
        question="Clients cannot lock or write the state until you unfreeze it. The owner of an "
        "active lock can finish. Clients can still read the state.",
        form=FreezeForm,
        offered=lambda state: state.deleted_at is None and state.frozen_at is None,
        displayed=_freeze,
        change=_FREEZE_CHANGED,
    )
    def freeze(self, state: State, actor: Actor, **given: Any) -> str:
        """Freeze the state."""
        freezing.freeze(state_id=state.pk, actor=actor, **given)
        return "State frozen."

    @object_tool(
        label="Change freeze",
        permission="states.freeze_state",
        question="The state stays frozen, with this reason and this expected end time.",
        form=FreezeForm,
        defaults=lambda state: {
            "reason": state.freeze_reason,
            "expected_until": _future(state.freeze_expected_until),
        },
        offered=lambda state: state.deleted_at is None and state.frozen_at is not None,
        displayed=_freeze,
        change=_FREEZE_CHANGED,
    )
    def change_freeze(self, state: State, actor: Actor, **given: Any) -> str:
        """Replace the reason and the expected end of the freeze."""
        freezing.freeze(state_id=state.pk, actor=actor, **given)
        return "Freeze changed."

    @object_tool(
        label="Unfreeze",
        permission="states.freeze_state",
        question="Clients can lock and change the state again.",
        form=UnfreezeForm,
        offered=lambda state: state.frozen_at is not None,
        displayed=_freeze,
        change=_FREEZE_CHANGED,
    )
    def unfreeze(self, state: State, actor: Actor, *, reason: str, check: Any) -> str:
        """Unfreeze the state."""
        why = {"reason": reason} if reason else {}
        freezing.unfreeze(state_id=state.pk, actor=actor, check=check, **why)
        return "State unfrozen."

    @object_tool(
        label="Restore a version",
        permission="states.restore_state",
        question="The content of this version becomes a new version. Its serial is above the "
        "current serial, so Terraform accepts it. All versions in between stay in the history.",
        form=RestoreForm,
        defaults=lambda state: {"number": _last_before_current(state)},
        offered=lambda state: state.deleted_at is None and state.version_number > 0,
        shown=is_writable,
        displayed=_version,
        change=_VERSION_STORED,
    )
    def restore_version(
        self, state: State, actor: Actor, *, number: int, reason: str, check: Any
    ) -> str:
        """Restore the content of an old version."""
        why = {"reason": reason} if reason else {}
        version = history.restore(
            state_id=state.pk, number=number, lock_id=None, actor=actor, check=check, **why
        )
        return f"Version {number} is restored as version {version.number}."

    def tool_preview(self, request: HttpRequest, obj: Any, name: str, form: Any) -> dict[str, Any]:
        """Return the changes that restoring a version would make."""
        if name != "restore_version" or (number := _number(form["number"].value())) is None:
            return {}
        context: dict[str, Any] = {
            "preview": "admin/states/state/restore_preview.html",
            "most_rows": MOST_ROWS,
        }
        try:
            context["comparison"] = comparison.compare(
                obj,
                obj.version_number,
                number,
                start=0,
                hide=True,
                actor=self.admin_site.actor(request),
            )
        except APIException as error:
            context["preview_fault"] = str(error.detail)
        return context

    @object_tool(
        label="Delete",
        permission="states.delete_state",
        question="Terraform no longer finds the state. You can undelete it until its retention "
        "ends. A state without versions is removed immediately.",
        form=DeleteForm,
        offered=lambda state: state.deleted_at is None,
        shown=is_writable,
        displayed=_version,
        change=_VERSION_STORED,
        destructive=True,
    )
    def delete_state(self, state: State, actor: Actor, *, reason: str, check: Any) -> str:
        """Delete the state."""
        history.delete(target=StateTarget.of(state), actor=actor, check=check, reason=reason)
        if state.current_version_id is None:
            return "The empty state is removed."
        return "The state is deleted. You can undelete it until its retention period ends."

    @object_tool(
        label="Undelete",
        permission="states.delete_state",
        question="The state is restored unchanged.",
        offered=lambda state: state.deleted_at is not None,
        displayed=lambda state: state.deleted_at,
        change="The state was deleted again",
    )
    def undelete(self, state: State, actor: Actor, *, check: Any) -> str:
        """Restore the deleted state."""
        history.undelete(state_id=state.pk, actor=actor, check=check)
        return "State restored."


def _future(moment: dt.datetime | None) -> dt.datetime | None:
    return moment if moment is not None and moment > timezone.now() else None


def _last_before_current(state: State) -> int | None:
    """Return the number of the version before the current version."""
    earlier = StateVersion.objects.filter(state=state, number__lt=state.version_number)
    return earlier.order_by("-number").values_list("number", flat=True).first()


def _number(value: Any) -> int | None:
    text = str(value)
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(LAST_NUMBER))
    return int(text) if is_number and 0 < int(text) <= LAST_NUMBER else None


def _holder(state: State) -> str:
    """Return a description of the lock and its owner, or an empty string if there is no lock."""
    holder = holder_of(state)
    if holder is None:
        return ""
    since, age = f"{holder.since:%Y-%m-%d %H:%M:%S} UTC", timesince(holder.since, depth=1)
    by_door = f", through the {holder.door} backend" if holder.door else ""
    return f"{holder.who}, {holder.operation} since {since}, for {age}{by_door}"
