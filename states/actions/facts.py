"""Record the facts that a pipeline reports about a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from apikeys import audit
from filterlang.versions import sort_key
from infra_service.lib.database.retries import retrying
from states.errors import StateNotFound, VersionNotFound
from states.models import State, StateVersion, UsedVersion, VersionFacts
from states.models.version_facts import short_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.actors import Actor
    from states.pipeline.lock_file import Provider
    from states.pipeline.module_manifest import Module

Kind = UsedVersion.Kind
#: Maximum rows per INSERT.
_ROWS: Final = 500
#: The fields with the facts themselves, without the reporter and the time.
FACT_FIELDS: Final = ("commit", "repository", "run", "run_url", "providers", "modules")


@retrying
@transaction.atomic
def record_facts(
    *,
    version: StateVersion,
    actor: Actor,
    providers: Sequence[Provider],
    modules: Sequence[Module],
    **values: str,
) -> VersionFacts:
    """Record the facts of the version, and replace existing facts. Identical facts change nothing.

    ``values`` are ``commit``, ``repository``, ``run`` and ``run_url``.

    Raises:
        StateNotFound: the state was deleted or has left the actor's binding in the meantime.
        VersionNotFound: retention has removed the version in the meantime.
    """
    _lock(version, actor)
    present = VersionFacts.objects.filter(pk=version.pk).first()
    facts = VersionFacts(
        version=version,
        **values,
        providers=[provider._asdict() for provider in providers],
        modules=[module._asdict() for module in modules],
        recorded_at=actor.now(),
        recorded_by=actor.name,
        token_id=actor.token_id,
    )
    if present is not None and _said(present) == _said(facts):
        return present
    VersionFacts.objects.bulk_create(
        [facts],
        update_conflicts=True,
        unique_fields=["version"],
        update_fields=[*FACT_FIELDS, "recorded_at", "recorded_by", "token_id"],
    )
    _use(version, providers, modules)
    audit.authorize_and_record(
        actor,
        "state.facts",
        version.state_id,
        version=version.number,
        **values,
        providers=len(providers),
        modules=len(modules),
        replaced=present is not None,
    )
    return facts


def _lock(version: StateVersion, actor: Actor) -> None:
    """Prevent the removal of the version until the transaction ends.

    Retention removes a version with its facts. Facts that are stored afterwards would stay. The
    current version is never removed, and is not locked, because the resource index locks it.

    Raises:
        StateNotFound, VersionNotFound: see ``record_facts``.
    """
    states = State.objects.visible().inside(actor.grant.binding).filter(pk=version.state_id)
    current = states.values_list("current_version").first()
    if current is None:
        raise StateNotFound
    if current == (version.pk,):
        return
    locked = StateVersion.objects.select_for_update(no_key=True)
    own = locked.filter(pk=version.pk, state_id=version.state_id)
    if own.values_list("pk").first() is None:
        raise VersionNotFound


def _said(facts: VersionFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in FACT_FIELDS}


def _use(version: StateVersion, providers: Sequence[Provider], modules: Sequence[Module]) -> None:
    """Index the facts for filters of states, unless a newer version of the state has facts."""
    of_state = UsedVersion.objects.filter(state_id=version.state_id)
    # On Citus, the condition on the version's own state prevents a scan of all versions.
    newer = {"version__state_id": version.state_id, "version__number__gt": version.number}
    if of_state.filter(**newer).exists():
        return
    of_state.delete()
    # A set, because several module calls can have the same source and version.
    used = {(Kind.PROVIDER, one.source, sort_key(one.version)) for one in providers}
    used |= {(Kind.MODULE, one.source, sort_key(one.version)) for one in modules}
    UsedVersion.objects.bulk_create(
        [
            UsedVersion(
                version=version,
                state_id=version.state_id,
                kind=kind,
                source=short_source(source),
                sort_key=key,
            )
            for kind, source, key in used
            if key is not None
        ],
        batch_size=_ROWS,
        ignore_conflicts=True,
    )
