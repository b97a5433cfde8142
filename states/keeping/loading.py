"""A loader of documents that the resource index shares with the receivers of its signal."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable

from states.document.contents import LoadedDocument
from states.keeping import reading

#: A function that returns the document for the ids of a version and its state.
Load = Callable[[uuid.UUID, uuid.UUID], LoadedDocument]


def loader() -> Load:
    """Return a function that loads documents, and caches the last two.

    The function raises DocumentUnreadable or StorageUnavailable. The document of a removed version
    is empty.
    """
    return functools.lru_cache(maxsize=2)(lambda *ids: LoadedDocument(reading.load(*ids)[1]))
