"""Preset conditions for a repository, so that authors of policies need not know the claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from apikeys.federation.platforms import PLATFORMS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apikeys.federation.conditions import Condition

#: The claims that identify an origin of code, by platform and name of the origin.
_ORIGINS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    Kind.GITHUB.value: {
        "environment": {"environment": "{}"},
        "branch": {"ref": "refs/heads/{}", "ref_protected": "true"},
    },
    Kind.GITLAB.value: {
        "environment": {"environment": "{}", "environment_protected": "true"},
        "branch": {"ref": "{}", "ref_type": "branch", "ref_protected": "true"},
    },
    Kind.BUILDKITE.value: {"branch": {"build_branch": "{}"}},
}


def preset(kind: str, ids: Mapping[str, str], **origin: str) -> list[Condition]:
    """Return the conditions of a policy for these ids and this origin of the code.

    ``ids`` contains the values of the platform's id claims. ``preset_origins`` returns the names
    that ``origin`` can contain.
    """
    conditions = [{"claim": claim, "equals": ids[claim]} for claim in PLATFORMS[kind].ids]
    for name, value in origin.items():
        for claim, wanted in _ORIGINS[kind][name].items():
            conditions.append({"claim": claim, "equals": wanted.format(value)})
    return conditions


def preset_origins(kind: str) -> list[str]:
    """Return the origins that ``preset`` supports: ``environment``, ``branch``."""
    return list(_ORIGINS.get(kind, ()))
