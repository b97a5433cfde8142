"""Documents that the index and the receivers of its signal share."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable

from states.document.contents import LoadedDocument
from states.keeping import reading

#: Return the document of a version by its id and that of its state.
Load = Callable[[uuid.UUID, uuid.UUID], LoadedDocument]


def loader() -> Load:
    """Return a function that loads and parses each document once; it keeps the last two.

    The function raises DocumentUnreadable and StorageUnavailable. A removed version is empty.
    """
    return functools.lru_cache(maxsize=2)(lambda *ids: LoadedDocument(reading.load(*ids)[1]))
