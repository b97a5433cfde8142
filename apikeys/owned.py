"""Objects of a user that other apps define, and that work as long as their owner is active.

An operator can create such an object without a key, for example a webhook. The revocation of a
user's keys and tokens therefore does not include it. Its app registers the kind of object here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from apikeys.models import User


class OwnedKind(NamedTuple):
    """A kind of object. The plural of its name ends with "s"."""

    name: str
    #: Returns the objects without a key that would work if the user were active.
    enabled: Callable[[User], QuerySet[Any]]
    #: Disables these objects, so that only an operator can enable them.
    disable: Callable[[User, Actor], None]


#: The registered kinds.
OWNED: Final[list[OwnedKind]] = []
