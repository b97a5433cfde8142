"""``update_mask`` (AIP-134, AIP-161): the fields that a PATCH changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import empty

from infra_service.lib.api.parameters import refuse_unknown
from infra_service.lib.api.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import QueryDict

#: The names of the mask in the body and in the query.
NAMES: Final = ("update_mask", "updateMask")
EVERYTHING: Final = "*"

_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def read_mask(
    body: Mapping[str, Any], query: QueryDict, known: Iterable[str]
) -> frozenset[str] | None:
    """Return the paths of the mask in snake case, or None for a missing or empty mask.

    Raises:
        ValidationError: the mask is repeated, has a wrong type or contains an unknown path.
        InvalidParameter: the query has another parameter, such as a misspelt mask.
    """
    refuse_unknown(query, NAMES)
    given = [body[name] for name in NAMES if name in body]
    given += [text for name in NAMES for text in query.getlist(name)]
    if len(given) > 1:
        raise _refused("Given more than once.", "duplicate")
    mask = given[0] if given else None
    if isinstance(mask, str):
        mask = mask.split(",")
    if mask is None or mask in ([], [""]):
        return None
    if not isinstance(mask, list) or not all(isinstance(path, str) for path in mask):
        raise _refused("Must be paths such as 'name,scopes', or a list of paths.", "invalid")
    paths = frozenset(_HUMP.sub(r"_\1", path.strip()).lower() for path in mask)
    unknown = sorted(paths - {EVERYTHING, *known})
    if unknown:
        guess = did_you_mean(unknown[0], known)
        raise _refused(f"Unknown path {unknown[0][:64]!r}{guess}", "unknown_path")
    if EVERYTHING in paths and len(paths) > 1:
        raise _refused("'*' must be the only path.", "invalid")
    return paths


def select(
    fields: Mapping[str, Any], mask: frozenset[str] | None, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values that a PATCH sets, before validation.

    Without a mask, the PATCH sets the fields in the body. ``*`` selects all fields. A field in the
    mask that is absent or null in the body is reset to its default, if it has a default. Read-only
    fields are ignored. Unknown fields are kept, so that the serializer rejects them.
    """
    writable = {name: field for name, field in known.items() if not field.read_only}
    if mask is None:
        mask = frozenset(fields)
    names = writable.keys() if EVERYTHING in mask else mask & writable.keys()
    unknown = {name: value for name, value in fields.items() if name not in known}
    return {**unknown, **{name: _value(fields.get(name), writable[name]) for name in names}}


def _value(value: Any, field: Any) -> Any:
    if value is not None or field.allow_null or field.default is empty:
        return value
    return field.default() if callable(field.default) else field.default


def _refused(description: str, code: str) -> ValidationError:
    return ValidationError({"update_mask": [ErrorDetail(description, code)]})
