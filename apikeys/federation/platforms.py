"""Facts about the supported platforms, without rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from apikeys.models.federation import Issuer

if TYPE_CHECKING:
    from collections.abc import Mapping


Kind = Issuer.Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The facts about a kind of platform."""

    #: The issuer URL; empty if each installation has its own.
    url: str = ""
    #: Hosts that belong only to this platform. A leading dot includes all subdomains.
    hosts: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ("RS256",)
    #: Claims with permanent identifiers that are never reused. A policy must pin each.
    ids: tuple[str, ...] = ()
    #: Sets of claims. A policy with write scopes must pin one set, to exclude other branches and
    #: forks. Empty if the ids suffice.
    origins: tuple[tuple[str, ...], ...] = ()
    #: Claims under the control of the person that starts or writes a pipeline.
    chosen: frozenset[str] = frozenset()
    #: Claims with the repository, commit and run.
    repository: str = ""
    commit: str = ""
    run: str = ""


_CIRCLECI: Final = "oidc.circleci.com"
_SERVICE_ACCOUNT: Final = "/kubernetes.io/serviceaccount"

#: The suffix of a claim that marks the claim of the same name as protected.
PROTECTED: Final = "_protected"

PLATFORMS: Final[Mapping[str, Platform]] = {
    Kind.GITHUB.value: Platform(
        url="https://token.actions.githubusercontent.com",
        # GitHub Enterprise Cloud has its own issuers. A GitHub Enterprise Server has an issuer on
        # its own host.
        hosts=("token.actions.githubusercontent.com", ".ghe.com"),
        ids=("repository_id", "repository_owner_id"),
        origins=(("environment",), ("ref", "ref_protected"), ("job_workflow_ref",)),
        chosen=frozenset(
            {"actor", "actor_id", "triggering_actor", "workflow", "head_ref", "base_ref"}
        ),
        repository="repository",
        commit="sha",
        run="run_id",
    ),
    Kind.GITLAB.value: Platform(
        url="https://gitlab.com",
        hosts=("gitlab.com",),
        ids=("project_id", "namespace_id"),
        origins=(("environment", "environment_protected"), ("ref", "ref_protected")),
        chosen=frozenset(
            {"user_login", "user_email", "user_id", "user_identities", "environment_action"}
        ),
        repository="project_path",
        commit="sha",
        run="pipeline_id",
    ),
    Kind.KUBERNETES.value: Platform(
        algorithms=("RS256", "ES256"),
        ids=(
            "/kubernetes.io/namespace",
            f"{_SERVICE_ACCOUNT}/name",
            f"{_SERVICE_ACCOUNT}/uid",
        ),
        chosen=frozenset({"/kubernetes.io/pod/name"}),
        repository=f"{_SERVICE_ACCOUNT}/name",
        run="/kubernetes.io/pod/name",
    ),
    Kind.BUILDKITE.value: Platform(
        url="https://agent.buildkite.com",
        hosts=("agent.buildkite.com",),
        ids=("organization_id", "pipeline_id"),
        origins=(("build_branch",),),
        chosen=frozenset({"step_key", "build_tag", "build_source"}),
        repository="pipeline_slug",
        commit="build_commit",
        run="job_id",
    ),
    Kind.CIRCLECI.value: Platform(
        hosts=("oidc.circleci.com",),
        ids=(f"{_CIRCLECI}/project-id",),
        origins=(
            (f"{_CIRCLECI}/context-ids",),
            (f"{_CIRCLECI}/vcs-ref", f"{_CIRCLECI}/vcs-origin"),
        ),
        repository=f"{_CIRCLECI}/project-id",
        run=f"{_CIRCLECI}/job-id",
    ),
    Kind.CUSTOM.value: Platform(algorithms=("RS256", "ES256")),
}
