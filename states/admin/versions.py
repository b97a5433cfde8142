"""Admin pages of a state's versions: documents, contents and differences."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException

from apikeys.actors import Actor
from infra_service.lib.admin import ReadOnlyAdmin
from states.admin import comparison, contents_page, state_page
from states.admin.forms import LAST_NUMBER, CompareForm
from states.admin.values import MOST_ROWS
from states.api.sending import document_response
from states.errors import VersionNotFound
from states.keeping import reading
from states.lock_holders import is_writable

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from states.models import State

#: Documents contain passwords and keys. The permission to download documents is also the permission
#: to view sensitive values.
SECRETS: Final = "states.download_state"
_START: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class VersionPages(ReadOnlyAdmin):
    """The page of a state, and the pages that it links to."""

    change_form_template = "admin/states/state/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of documents, contents and differences."""
        ours = [
            path(
                f"<path:object_id>/{route}/",
                self.admin_site.admin_view(functools.partial(self._of_state, view=view)),
                name=f"states_state_{name}",
            )
            for route, name, view in (
                ("versions/<int:number>/document", "document", self.document_view),
                ("versions/<int:number>/contents", "contents", self.contents_view),
                ("compare", "compare", self.compare_view),
            )
        ]
        return [*ours, *super().get_urls()]

    def _of_state(
        self, request: HttpRequest, object_id: str, *, view: Any, **path: Any
    ) -> HttpResponse:
        """Call the view with the state. Show an error of the view on the state's page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        state = self.get_object(request, unquote(object_id))
        if state is None:
            raise Http404
        if path.get("number", 0) > LAST_NUMBER:
            return self._refused(request, state, VersionNotFound())
        try:
            answer: HttpResponse = view(request, state, **path)
        except APIException as error:
            return self._refused(request, state, error)
        return answer

    def _refused(self, request: HttpRequest, state: State, error: APIException) -> HttpResponse:
        messages.error(request, str(error.detail))
        return HttpResponseRedirect(reverse("admin:states_state_change", args=(state.pk,)))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the state: lock, instructions, versions and contents."""
        state: State = context["original"]
        is_requested = "contents" in request.GET
        context |= {
            **state_page.lock_of(state, request),
            **state_page.backend_of(state, request),
            **state_page.history_of(state, request.GET.get("versions_before", ""), request),
            **state_page.contents_of(state, is_requested=is_requested),
            **state_page.related_to(state),
            **state_page.index_of(state, request),
            "latest": self.admin_site.latest_changes(request.user, "state", state.pk),
            "may_download": request.user.has_perm(SECRETS),
            "may_restore": is_writable(state) and request.user.has_perm("states.restore_state"),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def document_view(self, request: HttpRequest, state: State, *, number: int) -> HttpResponse:
        """Return a version's document exactly as it was pushed."""
        if not request.user.has_perm(SECRETS):
            raise PermissionDenied
        actor = Actor.of_person(request)
        gzipped = reading.read_version(state_id=state.pk, number=number, actor=actor)
        response = document_response(request, gzipped)
        name = slugify(f"{state.component}-{state.environment}-{number}")
        response["Content-Disposition"] = f'attachment; filename="{name}.tfstate"'
        return response

    def contents_view(self, request: HttpRequest, state: State, *, number: int) -> HttpResponse:
        """Show the outputs and resources of a version with their values."""
        start = request.GET.get("start", "")
        context = {
            **self._page_context(request, state, f"Contents of version {number}"),
            "number": number,
            "contents": contents_page.read(
                state,
                number,
                start=int(start) if _START.fullmatch(start) else 0,
                hide=not _shows_secrets(request),
                actor=Actor.of_person(request),
            ),
        }
        return TemplateResponse(request, "admin/states/state/contents.html", context)

    def compare_view(self, request: HttpRequest, state: State) -> HttpResponse:
        """Show the changes between two versions."""
        form = CompareForm(request.GET)
        context = {**self._page_context(request, state, "Compare versions"), "form": form}
        if form.is_valid():
            context["comparison"] = comparison.compare(
                state,
                form.cleaned_data["before"],
                form.cleaned_data["after"],
                start=form.cleaned_data["start"] or 0,
                hide=not _shows_secrets(request),
                actor=Actor.of_person(request),
            )
        return TemplateResponse(request, "admin/states/state/compare.html", context)

    def _page_context(self, request: HttpRequest, state: State, title: str) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "subtitle": str(state),
            "opts": self.opts,
            "original": state,
            "most_rows": MOST_ROWS,
            "may_see_secrets": request.user.has_perm(SECRETS),
        }


def _shows_secrets(request: HttpRequest) -> bool:
    """Return whether to show sensitive values: only for a POST, which a link cannot send."""
    if request.method != "POST":
        return False
    if not request.user.has_perm(SECRETS):
        raise PermissionDenied
    return True
