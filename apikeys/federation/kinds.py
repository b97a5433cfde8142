"""Rules for trust policies by platform.

The rules cover claims that a policy must pin, weak conditions, and tokens that are always refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from apikeys.federation.conditions import named, path_of, pinned, text_of, value_at
from apikeys.federation.platforms import PLATFORMS, PROTECTED, Kind
from apikeys.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from apikeys.federation.conditions import Condition
    from apikeys.federation.platforms import Platform


#: Read-only scopes. A policy with any other scope must restrict the origin of the code.
_READING: Final = frozenset(
    {
        Scope.APIKEY_READ,
        Scope.STATE_READ,
        Scope.STATE_OUTPUTS,
        Scope.STATE_SECRETS,
        Scope.CLUSTER_READ,
        Scope.AUDIT_READ,
    }
)
_FROM_FORKS: Final = frozenset({"merge_request_event", "external_pull_request_event"})


def writes(scopes: Collection[str]) -> bool:
    """Return whether any of these scopes allows changes."""
    return not frozenset(scopes) <= _READING


def policy_faults(kind: str, conditions: Sequence[Condition], *, writes: bool) -> list[str]:
    """Return the reasons why valid conditions would trust too many pipelines."""
    platform, fixed = PLATFORMS[kind], pinned(conditions)
    faults = [
        f"Pin {claim} with 'equals' or 'in': names and other claims can be reassigned."
        for claim in platform.ids
        if path_of(claim) not in fixed
    ]
    if kind == Kind.CUSTOM and not fixed:
        faults.append(
            "Pin a claim with 'equals' or 'in', preferably an id that is never reassigned."
        )
    if writes and platform.origins and not _has_origin(platform, conditions):
        faults.append(
            "A policy with write scopes must not accept every branch and fork: pin "
            + ", or ".join(map(_words_of_origin, platform.origins))
            + "."
        )
    return faults


def policy_warnings(kind: str, conditions: Sequence[Condition]) -> list[str]:
    """Return warnings about allowed conditions that are weaker than they seem."""
    spoken_of = named(conditions)
    warnings = [
        f"{claim} is chosen by the author of a pipeline, so it does not restrict the pipeline."
        for claim in sorted(PLATFORMS[kind].chosen)
        if path_of(claim) in spoken_of
    ]
    if ("sub",) in spoken_of and kind != Kind.CUSTOM:
        warnings.append(
            "The format of sub depends on the platform's settings. Match individual claims instead."
        )
    if kind == Kind.BUILDKITE and ("build_branch",) in spoken_of:
        warnings.append("A fork can use the same branch name. Do not build forks in this pipeline.")
    return warnings


def refusals(kind: str, claims: Mapping[str, Any], *, writes: bool) -> list[str]:
    """Return the reasons to refuse these claims regardless of the policy.

    The absence of a claim that this decision requires is also a reason.
    """
    if kind == Kind.GITHUB:
        event = text_of(claims.get("event_name"))
        if event is None:
            return ["event_name is missing."]
        if event == "pull_request_target":
            return [
                (
                    "event_name is pull_request_target: a fork's code would run with the "
                    "permissions of the branch."
                )
            ]
    if kind == Kind.GITLAB and writes:
        return _refusals_of_gitlab(claims)
    return []


def described(kind: str, claims: Mapping[str, Any]) -> dict[str, str]:
    """Return ``repository``, ``commit`` and ``run`` from the claims; empty if missing."""
    platform = PLATFORMS[kind]
    sources = {"repository": platform.repository, "commit": platform.commit, "run": platform.run}
    return {
        name: (text_of(value_at(claims, claim)) or "") if claim else ""
        for name, claim in sources.items()
    }


def issuer_faults(kind: str, url: str, *, has_keys: bool) -> list[str]:
    """Return the reasons why an issuer of this kind cannot have this URL.

    The URL of an issuer with inline keys (``has_keys``), such as some clusters, need not be an
    https address, because the service sends it no requests.
    """
    if not url or not url.isascii() or not url.isprintable():
        return ["Not printable ASCII text."]
    actual = _platform_at(url) or kind
    if actual != kind:
        return [f"The kind of the issuer at this address is {actual}."]
    if kind == Kind.BUILDKITE and url != PLATFORMS[kind].url:
        return [f"The issuer URL of Buildkite is {PLATFORMS[kind].url}."]
    return [] if has_keys else address_faults(url)


def address_faults(url: str) -> list[str]:
    """Return the reasons why keys cannot be fetched from this URL."""
    is_plain = url.isascii() and url.isprintable() and not set(url) & set(" \\?#@")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if is_plain and is_sound:
        return []
    return ["Not an https address, such as 'https://gitlab.example.com'."]


def is_known_platform(url: str) -> bool:
    """Return whether the host of the URL belongs to a known platform."""
    return _platform_at(url) is not None


def _platform_at(url: str) -> str | None:
    """Return the kind of platform at this URL's host, in any spelling of the host name."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return None
    return next((kind for kind, platform in PLATFORMS.items() if _is_of(platform, host)), None)


def _has_origin(platform: Platform, conditions: Sequence[Condition]) -> bool:
    fixed, spoken_of = pinned(conditions), named(conditions)

    def is_pinned(claim: str, origin: Collection[str]) -> bool:
        path = path_of(claim)
        if claim.endswith(PROTECTED):
            return fixed.get(path) == frozenset({"true"})
        # Any condition on the name suffices if the origin also requires the name to be protected.
        return path in (spoken_of if claim + PROTECTED in origin else fixed)

    return any(all(is_pinned(claim, origin) for claim in origin) for origin in platform.origins)


def _words_of_origin(origin: Sequence[str]) -> str:
    words = [f"{claim} = 'true'" if claim.endswith(PROTECTED) else claim for claim in origin]
    return " with ".join(words)


def _refusals_of_gitlab(claims: Mapping[str, Any]) -> list[str]:
    source, project = (text_of(claims.get(name)) for name in ("pipeline_source", "project_id"))
    if source is None:
        return ["pipeline_source is missing."]
    refused = []
    if source in _FROM_FORKS:
        refused.append(
            f"pipeline_source is {source}, which may run a fork's code. Write scopes are refused."
        )
    # The project of the job (since GitLab 18.2). For a fork's code, it differs from project_id.
    if claims.get("job_project_id") is not None:
        of_job = text_of(claims["job_project_id"])
        if of_job != project:
            refused.append(f"job_project_id is {of_job}, another project than project_id.")
    elif source == "parent_pipeline":
        # A child pipeline has this source even if its parent runs for a fork's merge request.
        refused.append(
            "job_project_id is missing, as in tokens of older GitLab releases: without it a child "
            "pipeline (parent_pipeline) may run a fork's code. Write scopes are refused."
        )
    return refused


def _is_of(platform: Platform, host: str) -> bool:
    return any(
        host.endswith(known) if known.startswith(".") else host == known for known in platform.hosts
    )
