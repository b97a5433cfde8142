"""A finder of the static files that the service's pages use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.staticfiles.finders import AppDirectoriesFinder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The directory of a viewer that no page uses. Its source map is so large that a slow client would
#: occupy a thread.
_UNUSED = "redoc"


class UsedFilesFinder(AppDirectoriesFinder):
    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[Any]:
        """Yield the files of all apps without the unused viewer."""
        yield from super().list([*(ignore_patterns or ()), _UNUSED])
