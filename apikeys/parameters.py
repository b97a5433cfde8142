"""Which query parameters a list takes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from apikeys.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.http import QueryDict


def refuse_unknown(parameters: QueryDict, known: Collection[str]) -> None:
    """Refuse parameters that are misspelt, since a filter that is not applied shows too much.

    Raises:
        InvalidParameter: unknown, or given more than once.
    """
    for name, values in parameters.lists():
        if name not in known:
            near = difflib.get_close_matches(name[:64].lower(), sorted(known), n=1)
            guess = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise InvalidParameter(name[:64], f"Unknown parameter; {guess}", "UNKNOWN_PARAMETER")
        if len(values) > 1:
            raise InvalidParameter(name, "Given more than once.", "DUPLICATE")
