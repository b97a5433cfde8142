"""Slugs: names of applications, components and environments in addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils.text import slugify

if TYPE_CHECKING:
    import uuid

MOST: Final = 63
#: The required form, for messages.
DESCRIPTION: Final = (
    "1 to 63 lower-case letters, digits and dashes, without a dash at either end, and not a UUID"
)
PATTERN: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
# The pattern also matches UUIDs without dashes, because programs would read them as ids.
_LIKE_A_UUID: Final = r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}"
#: `…/{component}/{environment}/lock` is the lock of a state, so no environment can have this slug.
RESERVED: Final = {"environment": frozenset({"lock"})}
# Compiled once, because every request with names uses them.
_SLUG: Final = re.compile(PATTERN, re.ASCII)
_UUID: Final = re.compile(_LIKE_A_UUID, re.ASCII)
_FIRST_NUMBERS: Final = range(2, 10)


def is_slug(text: str, kind: str) -> bool:
    """Return whether the text can be the slug of an entry of this kind, such as ``component``."""
    return (
        _SLUG.fullmatch(text) is not None
        and _UUID.fullmatch(text) is None
        and text not in RESERVED.get(kind, ())
    )


def of_the_form(*, reserved: frozenset[str] = frozenset()) -> Q:
    """Return the rule of ``is_slug`` as a condition for a constraint. The slug may be null."""
    form = Q(slug__regex=rf"\A{PATTERN}\Z") & ~Q(slug__regex=rf"\A{_LIKE_A_UUID}\Z")
    if reserved:
        form &= ~Q(slug__in=sorted(reserved))
    return Q(slug=None) | form


def slug_of(name: str, kind: str) -> str:
    """Return the slug derived from a name."""
    slug = slugify(re.sub(r"[\W_]+", "-", name))[:MOST].strip("-")
    return slug if is_slug(slug, kind) else f"{kind}-{slug}"[:MOST].strip("-")


def choices(name: str, kind: str, entry_id: uuid.UUID) -> list[str]:
    """Return the possible slugs of an entry with this name, the best first.

    The last slug ends with 12 digits of the entry's id, so it is unique.
    """
    best = slug_of(name, kind)
    suffixes = [*map(str, _FIRST_NUMBERS), entry_id.hex[-12:]]
    return [best, *(_with_suffix(best, suffix) for suffix in suffixes)]


def _with_suffix(slug: str, suffix: str) -> str:
    return f"{slug[: MOST - 1 - len(suffix)].rstrip('-')}-{suffix}"
