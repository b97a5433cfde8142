"""Passwords that are set, in the trail: Django tells every validator of each, whoever set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys import actors, audit

if TYPE_CHECKING:
    from apikeys.models import User


class RecordedPassword:
    """A validator that takes every password, and records that one was set."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Take it."""

    def password_changed(self, password: str, user: User) -> None:
        """Record whose it is; never the password."""
        del password
        actor = actors.current_actor()
        audit.authorize_and_record(
            actor, "user.password", user.pk, name=user.username, own=actor.user_id == user.pk
        )

    def get_help_text(self) -> str:
        """Say what becomes of it."""
        return "The audit trail will say that it was set, and by whom."
