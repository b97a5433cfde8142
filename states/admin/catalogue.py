"""Admin pages of applications, components and environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from infra_service.lib.admin import EditableAdmin, EditForm
from infra_service.lib.admin.names import names_of
from infra_service.lib.api.identifiers import parse_uuid
from states.actions import catalogue, removal
from states.admin.filters import ApplicationFilter
from states.models import Application, Component, Environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from apikeys.actors import Actor
    from infra_service.lib.admin.site import AuditedSite
    from states.models.catalogue_entry import CatalogueEntry


class NameForm(EditForm):
    """A form with a required name. Entries that a push registered can lack a name."""

    name = forms.CharField(max_length=200)


class ComponentForm(NameForm):
    """A form with a name, and an application by name or id."""

    site: AuditedSite
    application = forms.CharField(
        required=False,
        widget=forms.TextInput(attrs={"class": "vTextField", **names_of("application")}),
        help_text="A name or an id. Leave empty for no application.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        application = self.instance.application
        if application is not None:
            self.initial["application"] = application.name or str(application.pk)

    def clean_application(self) -> Application | None:
        """Return the application with this name or id.

        An unchanged name keeps the current application, because names are not unique.
        """
        text = self.cleaned_data["application"]
        application: Application | None = self.instance.application
        if not text or text == self.initial.get("application"):
            return application if text else None
        ids, faults = self.site.ids_of("application", [text])
        named: Application | None = Application.objects.filter(pk__in=ids).first()
        if named is None:
            raise forms.ValidationError(faults or "There is no application with this id.")
        return named


class EnvironmentForm(NameForm):
    """A form with a name, and the setting that pushes require a lock."""

    require_lock = forms.BooleanField(
        label="Require a lock",
        required=False,
        help_text="Refuse pushes without a lock ID, for example from backend blocks without "
        "lock_address.",
    )


class CatalogueAdmin(EditableAdmin):
    """The base of the admin pages of applications, components and environments."""

    when_empty = (
        "The first push or lock at an address registers its component, its environment and the "
        "application that it names. Users with the permission to add entries can add them here."
    )
    form = NameForm
    page_key = ("name", "id")
    fields: ClassVar[Any] = ("name", "slug", "id", "states", "created", "updated")
    readonly_fields: ClassVar[Any] = ("slug", "id", "states", "created", "updated")
    list_display: Any = ("title", "slug", "updated")
    orders: ClassVar[Any] = {"title": ("name", "id"), "updated": ("updated_at", "id")}
    opening_order = "-updated"
    search_fields = ("name",)
    search_help_text = "Part of a name, or an id."

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return the entry with this id, or the entries with this text in their names."""
        entry_id = parse_uuid(term)
        if entry_id is not None:
            return queryset.filter(pk=entry_id)
        return queryset.filter(name__icontains=term)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(
        self, objs: Iterable[CatalogueEntry], _request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[str]]:
        """Return only the entries, because entries with states or components cannot be deleted."""
        entries = [str(entry) for entry in objs]
        return entries, {self.opts.verbose_name_plural: len(entries)}, set(), []

    def delete_model(self, request: HttpRequest, obj: CatalogueEntry) -> None:
        removal.delete_entry(
            model=self.model, entry_id=obj.pk, actor=self.admin_site.actor(request)
        )

    def create(self, fields: Mapping[str, Any], actor: Actor) -> CatalogueEntry:
        created: CatalogueEntry = catalogue.create(model=self.model, fields=fields, actor=actor)
        return created

    def update(self, obj: Any, changes: Mapping[str, Any], actor: Actor) -> None:
        """Change the entry. Moving a component to another application also moves its states."""
        catalogue.change(model=self.model, entry_id=obj.pk, changes=changes, actor=actor)

    @admin.display(description="name")
    def title(self, obj: CatalogueEntry) -> str:
        """Return the name, or the id of an unnamed entry."""
        return obj.name or f"unnamed, {obj.pk}"

    @admin.display(description="states")
    def states(self, obj: CatalogueEntry) -> str:
        return _link("states_state", f"q={obj.pk}", "View states")


@admin.register(Application)
class ApplicationAdmin(CatalogueAdmin):
    fields = ("name", "slug", "id", "components", "states", "created", "updated")
    readonly_fields: ClassVar[Any] = (*CatalogueAdmin.readonly_fields, "components")

    @admin.display(description="components")
    def components(self, obj: Application) -> str:
        return _link("states_component", f"application={obj.pk}", "View components")


@admin.register(Component)
class ComponentAdmin(CatalogueAdmin):
    """The admin of components. Moving a component to an application also moves its states."""

    fields = ("name", "slug", "application", "id", "states", "created", "updated")
    list_display = ("title", "slug", "application", "updated")
    list_filter = (ApplicationFilter,)
    list_select_related = ("application",)
    form = ComponentForm

    def get_form(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the admin site, which looks up applications by name, to the form."""
        form: Any = super().get_form(*args, **kwargs)
        form.site = self.admin_site
        return form


@admin.register(Environment)
class EnvironmentAdmin(CatalogueAdmin):
    form = EnvironmentForm
    fields = ("name", "require_lock", "slug", "id", "states", "created", "updated")
    list_display = ("title", "slug", "lock_requirement", "updated")

    @admin.display(description="lock")
    def lock_requirement(self, environment: Environment) -> str:
        """Return whether a push requires a lock, as text."""
        return "required" if environment.require_lock else "not required"


def _link(model: str, query: str, text: str) -> str:
    return format_html('<a href="{}?{}">{}</a>', reverse(f"admin:{model}_changelist"), query, text)
