"""Counts of a document's resources by provider and type, and its Terraform version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from states.models.resource_counts import Amount, Counted, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from states.resources.extraction import Found


def amounts(resources: Sequence[Found], terraform_version: str) -> dict[Counted, Amount]:
    """Return the counts of a document. A deposed object counts as a resource."""
    managed: Counter[Counted] = Counter()
    data: Counter[Counted] = Counter()
    for one in resources:
        of_mode = data if one.mode == "data" else managed
        for key in (Counted(Kind.PROVIDER, one.provider), Counted(Kind.RESOURCE_TYPE, one.type)):
            if key.value:
                of_mode[key] += 1
    found = {key: Amount(managed[key], data[key]) for key in managed.keys() | data.keys()}
    if terraform_version:
        found[Counted(Kind.TERRAFORM_VERSION, terraform_version)] = Amount()
    return found
