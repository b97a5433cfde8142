"""The versions of a state: their list, their documents, and what changed between two."""

from __future__ import annotations

import functools
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException

from apikeys.audit import Actor
from infra_service.admin import ReadOnlyAdmin
from states.admin import comparison
from states.admin.forms import LAST_NUMBER, CompareForm
from states.api.sending import document_response
from states.errors import VersionNotFound
from states.keeping import reading
from states.models import State, StateVersion

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

#: On a page of a state's versions, and in its chart.
VERSIONS: Final = 100
#: Documents hold passwords and keys; who may download them may also see them.
SECRETS: Final = "states.download_state"
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class VersionPages(ReadOnlyAdmin):
    """What the page of a state shows of its versions, and the pages that lead from there."""

    class Media:
        css: ClassVar[Any] = {"all": ["admin_base/pages.css"]}

    change_form_template = "admin/states/state/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of documents and differences."""
        ours = [
            path(
                f"<path:object_id>/{route}/",
                self.admin_site.admin_view(functools.partial(self._of_state, view=view)),
                name=f"states_state_{name}",
            )
            for route, name, view in (
                ("versions/<int:number>/document", "document", self.document_view),
                ("compare", "compare", self.compare_view),
            )
        ]
        return [*ours, *super().get_urls()]

    def _of_state(
        self, request: HttpRequest, object_id: str, *, view: Any, **path: Any
    ) -> HttpResponse:
        """Call the view with the state; what it refuses is told on the state's page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        state = self.get_object(request, unquote(object_id))
        if state is None:
            raise Http404
        try:
            answer: HttpResponse = view(request, state, **path)
        except APIException as error:
            messages.error(request, str(error.detail))
            return HttpResponseRedirect(reverse("admin:states_state_change", args=(state.pk,)))
        return answer

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the state with a page of its versions."""
        state: State = context["original"]
        may_restore = request.user.has_perm("states.restore_state")
        context |= _history(state, request.GET.get("versions_before", ""))
        context["may_download"] = request.user.has_perm(SECRETS)
        context["may_restore"] = may_restore and state.deleted_at is None
        return super().render_change_form(request, context, *args, **kwargs)

    def document_view(self, request: HttpRequest, state: State, *, number: int) -> HttpResponse:
        """Send a version's document, exactly as it was pushed."""
        if not request.user.has_perm(SECRETS):
            raise PermissionDenied
        if number > LAST_NUMBER:
            raise VersionNotFound
        actor = Actor.of_person(request)
        gzipped = reading.read_version(state_id=state.pk, number=number, actor=actor)
        response = document_response(request, gzipped)
        name = slugify(f"{state.component}-{state.environment}-{number}")
        response["Content-Disposition"] = f'attachment; filename="{name}.tfstate"'
        return response

    def compare_view(self, request: HttpRequest, state: State) -> HttpResponse:
        """Show what changed from one version to another."""
        form = CompareForm(request.GET)
        context = {
            **self.admin_site.each_context(request),
            "title": "Compare versions",
            "opts": self.opts,
            "original": state,
            "form": form,
            "most_rows": comparison.MOST_ROWS,
        }
        if form.is_valid():
            context["comparison"] = comparison.compare(
                state,
                form.cleaned_data["before"],
                form.cleaned_data["after"],
                start=form.cleaned_data["start"] or 0,
                hide=not request.user.has_perm(SECRETS),
                actor=Actor.of_person(request),
            )
        return TemplateResponse(request, "admin/states/state/compare.html", context)


def _history(state: State, before: str) -> dict[str, Any]:
    """Return a page of the versions, the newest first, and their figures from the oldest on."""
    versions = StateVersion.objects.filter(state=state).order_by("-number")
    if _NUMBER.fullmatch(before):
        versions = versions.filter(number__lt=int(before))
    found = list(versions[: VERSIONS + 1])
    # Each with the one before it, which the first has not.
    pairs = list(zip_longest(found, found[1:]))[:VERSIONS]
    shown = [version for version, _ in pairs]
    last_two = [version.number for version in shown[:2]]
    return {
        "versions": pairs,
        "newest": shown[0] if shown else None,
        "oldest": shown[-1] if shown else None,
        "older_versions": shown[-1].number if len(found) > VERSIONS else None,
        "sizes": [(f"version {v.number}", v.size_bytes) for v in reversed(shown)],
        "serials": [(f"version {v.number}", v.serial) for v in reversed(shown)],
        "compare_form": CompareForm(initial=dict(zip(("after", "before"), last_two, strict=False))),
    }
