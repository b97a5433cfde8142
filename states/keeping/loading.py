"""Documents that the index shares with the receivers of its signal."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable

from states.document.contents import LoadedDocument
from states.keeping import reading

#: Returns the document of a version by the ids of the version and its state.
Load = Callable[[uuid.UUID, uuid.UUID], LoadedDocument]


def loader() -> Load:
    """Return a function that loads and parses each document once, and caches the last two.

    The function raises DocumentUnreadable and StorageUnavailable. The document of a removed version
    is empty.
    """
    return functools.lru_cache(maxsize=2)(lambda *ids: LoadedDocument(reading.load(*ids)[1]))
