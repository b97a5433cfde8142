"""Resources of all states: lists by state, type and address, and a search by identifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from infra_service.lib.admin import ReadOnlyAdmin
from infra_service.lib.admin.input_filters import IdFilter, InputFilter
from infra_service.lib.admin.templatetags.words import breakable
from infra_service.lib.database.bounded_pages import read_page
from infra_service.lib.database.prefixes import starts_with
from states.admin.forms import FindForm
from states.models import ResourceEntry, State
from states.resources.digests import digests

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern


#: The address and the id of the last result of a page; the address is empty for identifiers.
Position = tuple[str, Any]


def found_resources(
    resources: Any, value: str, *, size: int, after: Position | None = None
) -> tuple[list[ResourceEntry], Position | None]:
    """Return the resources with this address or identifier, and the position of the next page.

    An address also finds its instances: ``aws_instance.web`` finds ``aws_instance.web[0]``. The
    identifiers are searched only if no resource has this address.
    """
    address, last = after or ("", None)
    if "." in value and (address or after is None):
        instances = starts_with(ResourceEntry, "address", f"{value}[")
        at = resources.filter(Q(address=value) | instances).order_by("address", "id")
        if address:
            at = at.filter(Q(address__gt=address) | Q(address=address, id__gt=last))
        here = list(at[: size + 1])
        if here or address:
            end = here[size - 1] if len(here) > size else None
            return here[:size], (end.address, end.pk) if end else None
    page = read_page(
        resources.identified_by(digests(value)),
        key=("id",),
        position=[str(last)] if last else None,
        size=size,
    )
    return list(page.rows), ("", page.position[0]) if page.position else None


#: Search results per page.
FOUND: Final = 50


class StateFilter(IdFilter):
    """A filter by the id of a state. The page of a state links to it."""

    title = "id of a state"
    parameter_name = "state"
    column = "state_id"


class TypeFilter(InputFilter):
    """A filter by resource type, such as ``aws_instance``."""

    title = "type"
    parameter_name = "type"

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        del request
        return queryset.filter(type=text)


@admin.register(ResourceEntry)
class ResourceAdmin(ReadOnlyAdmin):
    when_empty = "manage.py index_states --watch indexes the resources of pushed states."
    list_display = ("shown_address", "type", "state_link", "shown_provider")
    orders: ClassVar[Any] = {
        "shown_address": ("address", "id"),
        "type": ("type", "id"),
        "shown_provider": ("provider", "id"),
    }
    list_filter = (StateFilter, TypeFilter)
    search_fields = ("address",)
    search_help_text = "Part of the address."
    fields = (
        "shown_address", "state_link", "version", "module", "mode", "type", "name", "index_key",
        "shown_provider", "id",
    )  # fmt: skip
    change_list_template = "admin/states/resource/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page that finds a resource."""
        find = self.admin_site.admin_view(self.find_view)
        return [path("find/", find, name="states_resourceentry_find"), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ResourceEntry]:
        """Return all resources. Separate queries fetch the names of the states on a page."""
        around = ("state__component", "state__environment")
        return super().get_queryset(request).prefetch_related(*around)

    def found(self, queryset: QuerySet[ResourceEntry], term: str) -> QuerySet[ResourceEntry]:
        """Return the resources with this text in their addresses."""
        return queryset.filter(address__icontains=term)

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Show the resources with an identifier. POST keeps the identifier out of URLs and logs."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = FindForm(request.POST if request.method == "POST" else None)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": "Find a resource",
            "opts": self.opts,
            "form": form,
        }
        if form.is_valid():
            value, address, last = (form.cleaned_data[x] for x in ("value", "address", "after"))
            after = (address, last) if last else None
            resources: Any = self.get_queryset(request)
            found, position = found_resources(resources, value, size=FOUND, after=after)
            context |= {
                "form": FindForm(initial={"value": value}),
                "value": value,
                "is_later_page": after is not None,
                "found": found,
                "next": position,
                "is_behind": State.objects.due().exists(),
            }
        return TemplateResponse(request, "admin/states/resource/find.html", context)

    @admin.display(description="address")
    def shown_address(self, entry: ResourceEntry) -> str:
        """Return the address, and the key of a deposed object."""
        deposed = f" (deposed {entry.deposed})" if entry.deposed else ""
        return breakable(f"{entry.address}{deposed}")

    @admin.display(description="provider")
    def shown_provider(self, entry: ResourceEntry) -> str:
        """Return the provider's address."""
        return breakable(entry.provider)

    @admin.display(description="state")
    def state_link(self, entry: ResourceEntry) -> str:
        url = reverse("admin:states_state_change", args=(entry.state_id,))
        return format_html('<a href="{}">{}</a>', url, entry.state)

    @admin.display(description="version of the state")
    def version(self, entry: ResourceEntry) -> int:
        """Return the number of the indexed version."""
        return entry.state.indexed_number
