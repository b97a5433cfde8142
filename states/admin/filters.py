from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.utils import timezone

from infra_service.lib.admin.choice_filter import ChoiceFilter
from infra_service.lib.api.identifiers import parse_uuid
from states.lock_holders import STALE_AFTER
from states.models import Application
from states.models.engines import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet


class ApplicationFilter(SimpleListFilter):
    """A filter by application, set by a link on the application's page.

    It lists no other choices.
    """

    title = "application"
    parameter_name = "application"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        """Return the chosen application, even if its id is unknown."""
        if self.value() is None:
            return []
        name = next(map(str, self._chosen), "no entry with this id")
        return [(str(self.value()), name)]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        return queryset if self.value() is None else queryset.filter(application__in=self._chosen)

    @property
    def _chosen(self) -> QuerySet[Application, Application]:
        application_id = parse_uuid(self.value() or "")
        applications = Application.objects.all()
        return applications.filter(pk=application_id) if application_id else applications.none()


class StatusFilter(SimpleListFilter):
    """A filter by the status of states. Each choice uses its own index."""

    title = "status"
    parameter_name = "is"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        return [
            ("locked", "Locked"),
            ("stale", "Locked for over an hour"),
            ("frozen", "Frozen"),
            ("overdue", "Freeze overdue"),
            ("failing", "Failing checks"),
            ("encrypted", "Encrypted on the client"),
            ("deleted", "Deleted"),
        ]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield the choices. Only the choice "Deleted" shows deleted states."""
        first, *others = super().choices(changelist)
        yield {**first, "display": "Not deleted"}
        yield from others

    def queryset(self, _request: Any, queryset: Any) -> Any:
        present = queryset.visible()
        chosen: dict[str | None, Callable[[], Any]] = {
            "deleted": lambda: queryset.filter(deleted_at__isnull=False),
            "locked": lambda: present.filter(lock_id__isnull=False),
            "stale": lambda: present.filter(
                lock_id__isnull=False, lock_acquired_at__lt=timezone.now() - STALE_AFTER
            ),
            "frozen": present.frozen,
            "overdue": present.overdue,
            "failing": present.with_failing_checks,
            "encrypted": present.client_encrypted,
        }
        return chosen.get(self.value(), lambda: present)()


class EngineFilter(ChoiceFilter):
    """A filter by the engine that wrote the current version."""

    title = parameter_name = column = "engine"
    offered = Engine.choices
