"""Facts that a pipeline reports about a version: commit, run, provider and module versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apikeys.actors import Actor
from apikeys.runs import run_of
from apikeys.scopes import Scope
from states.actions.facts import record_facts
from states.api.facts_openapi import facts_schema
from states.api.facts_serializers import FactsSerializer
from states.api.versions import OfStateViewSet
from states.errors import FactsNotFound
from states.models import VersionFacts
from states.pipeline import lock_file, module_manifest

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


@facts_schema
class FactsViewSet(OfStateViewSet):
    resource = "facts"
    serializer_class = FactsSerializer  # type: ignore[assignment]  # the base declares versions
    required_scopes = {"retrieve": Scope.STATE_READ, "update": Scope.STATE_WRITE}

    def retrieve(self, _request: Request, **_path: str) -> Response:
        """Return the facts of the version."""
        facts = VersionFacts.objects.filter(pk=self.get_object().pk).first()
        if facts is None:
            raise FactsNotFound
        return self._answer(facts)

    def update(self, request: Request, **_path: str) -> Response:
        """Record the facts of the version, and replace existing facts."""
        version, actor = self.get_object(), Actor.of(request)
        given = self.read_new()
        providers = lock_file.parse(given.get("lock_file", ""))
        # A configuration without modules has no file, or an empty file.
        modules = module_manifest.parse(given.get("modules_file") or {"Modules": []})
        # The platform supplies the values that the caller omits.
        run = run_of(actor)
        run_facts = {"commit": run.commit, "run": run.id, "run_url": run.url}
        facts = record_facts(
            version=version,
            actor=actor,
            providers=providers,
            modules=modules,
            repository=run.repository,
            **run_facts | {name: given[name] for name in ("commit", "run_url") if name in given},
        )
        return self._answer(facts)

    def _answer(self, facts: VersionFacts) -> Response:
        shown: Any = facts
        shown.version_number = self.kwargs["number"]
        return self.answer(shown)
