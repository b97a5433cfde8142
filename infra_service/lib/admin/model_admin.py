"""Base classes of admins: keyset pagination without COUNT, and read-only access."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from rest_framework.exceptions import APIException

from infra_service.lib.admin.change_list import CSV, KeysetChangeList
from infra_service.lib.admin.csv_export import csv_of
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.tools import DISPLAYED
from infra_service.lib.database.bounded_pages.segments import with_nulls_last

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.urls import URLPattern

    from infra_service.lib.admin.site import AuditedSite
    from infra_service.lib.admin.tools import ObjectTool
    from infra_service.lib.database.bounded_pages.segments import Segment

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


#: ``orders`` of a list with the column ``created``. Ids are in the order of creation.
BY_CREATION: Final[Mapping[str, Sequence[str]]] = {"created": ("id",)}


class KeysetAdmin(ModelAdmin):
    """An admin with keyset pagination: no COUNT, no OFFSET, and an index for each order."""

    admin_site: AuditedSite
    #: The order of the list: columns that are unique together, all ascending or all descending,
    #: with an index.
    page_key: ClassVar[Sequence[str]] = ("-id",)

    #: Alternative orders by column. Each order is an ascending key with an index, like
    #: ``page_key``.
    orders: ClassVar[Mapping[str, Sequence[str]]] = {}
    #: The order without a search or a filter, such as ``-changed``. The default is the page key.
    opening_order: ClassVar[str] = ""
    #: The advice on an empty list without filters.
    when_empty: ClassVar[str] = ""
    #: Additional columns of the CSV export, after the columns of the list.
    csv_columns: ClassVar[Sequence[str]] = ()

    actions: Any = None
    sortable_by = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    created = moment_of("created_at", "created")
    updated = moment_of("updated_at", "updated")
    expires = moment_of("expires_at", "expires", absent="never")
    last_used = moment_of("last_used_at", "last used", absent="never")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:  # noqa: ARG002 - Django's signature
        return KeysetChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list, or export it as CSV."""
        answer: Any = super().changelist_view(request, extra_context)
        cl = getattr(answer, "context_data", None) and answer.context_data.get("cl")
        return csv_of(request, cl) if cl and CSV in request.GET else answer

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row, or None. PostgreSQL rejects a NUL, so an id with a NUL has no row."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that match the search term, and False: there are no duplicates."""
        term = search_term.strip()
        return (self.found(queryset, term) if term else queryset), False

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Return the rows that match the search term. The default returns all rows."""
        del term
        return queryset

    def segments(self, key: Sequence[str], params: Mapping[str, str]) -> Sequence[Segment]:
        """Return the segments of the list in the order of the key, with null values last."""
        del params  # query parameters, for lists whose segments depend on their filters
        return with_nulls_last(self.model, key)

    def prepare_page(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Load the related data of all rows of a page in bulk."""

    def lookup_allowed(self, lookup: str, _value: Any, request: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Return whether the lookup is a declared filter. Other lookups would expose columns."""
        return lookup in {getattr(given, "parameter_name", None) for given in self.list_filter}


class ReadOnlyAdmin(KeysetAdmin):
    """An admin that changes objects only through ``tools``, which record audit events."""

    #: The names of the methods that are decorated with ``object_tool``.
    tools: ClassVar[Sequence[str]] = ()

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs, including a page for each tool."""
        model = f"{self.opts.app_label}_{self.opts.model_name}"
        ours = [
            path(
                f"<path:object_id>/{name.replace('_', '-')}/",
                self.admin_site.admin_view(functools.partial(self.tool_view, name=name)),
                name=f"{model}_{name}",
            )
            for name in self.tools
        ]
        return [*ours, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the object with the tools that the user may run now."""
        obj = context.get("original")
        if obj is not None:
            self.prepare_object(request, obj)
            context |= {"title": self.heading(obj), "subtitle": None}
        context["tools"] = [] if obj is None else self._offered(request, obj)
        return super().render_change_form(request, context, *args, **kwargs)

    def prepare_object(self, request: HttpRequest, obj: Any) -> None:
        """Load the related data that only the object's page shows."""

    def heading(self, obj: Any) -> str:
        """Return the heading of the object's page."""
        return str(obj)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Redirect to the audit log, which includes changes made outside the admin."""
        del request, extra_context  # the audit log checks the permission
        return HttpResponseRedirect(self.admin_site.audit_log_url(unquote(object_id)))

    def tool_view(self, request: HttpRequest, object_id: str, *, name: str) -> HttpResponse:
        """Ask for confirmation, run the tool, then show the object with a message."""
        method = getattr(self, name)
        tool: ObjectTool = method.tool
        if not (self.has_view_permission(request) and request.user.has_perm(tool.permission)):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined, no-any-return]  # Django's stubs lack it
        given = request.POST if request.method == "POST" else None
        # A link may only override defaults. It must not fill in other fields, such as an address.
        defaults = tool.defaults(obj)
        linked = {name: request.GET[name] for name in defaults.keys() & request.GET.keys()}
        prefilled = {**defaults, **linked, **tool.initial(obj)}
        form = tool.form(given, initial=prefilled)
        if not tool.offered(obj):
            messages.error(request, f"{tool.label} is no longer possible.")
            return HttpResponseRedirect(self._address(obj, "change"))
        if form.is_valid():
            try:
                fields = {**form.cleaned_data, **tool.condition(request.POST)}
                done = method(obj, self.admin_site.actor(request), **fields)
            except APIException as error:
                form.add_error(None, str(error.detail))
            else:
                messages.success(request, done)
                return self.after_tool(request, obj)
        displayed = request.POST.get(DISPLAYED, tool.displayed_of(obj))
        context = {
            **self.admin_site.each_context(request),
            "title": tool.label,
            "subtitle": str(obj),
            "opts": self.opts,
            "original": obj,
            "tool": tool,
            "form": form,
            "displayed": displayed,
            "is_outdated": displayed != tool.displayed_of(obj),
            "back": self._address(obj, "change"),
            **self.tool_preview(request, obj, name, form),
        }
        return TemplateResponse(request, "admin_base/tool.html", context)

    def after_tool(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Redirect to the object's page after a successful tool."""
        del request
        return HttpResponseRedirect(self._address(obj, "change"))

    def tool_preview(self, request: HttpRequest, obj: Any, name: str, form: Any) -> dict[str, Any]:
        """Return the context of ``preview``, the template that shows the effect of the tool."""
        del request, obj, name, form
        return {}

    def _offered(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        tools = ((name, getattr(self, name).tool) for name in self.tools)
        return [
            {"tool": tool, "url": self._address(obj, name)}
            for name, tool in tools
            if request.user.has_perm(tool.permission) and tool.offered(obj) and tool.shown(obj)
        ]

    def _address(self, obj: Any, name: str) -> str:
        model = f"{self.opts.app_label}_{self.opts.model_name}"
        return reverse(f"{self.admin_site.name}:{model}_{name}", args=(quote(obj.pk),))
