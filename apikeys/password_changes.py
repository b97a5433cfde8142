"""A password validator that records password changes, because Django notifies every validator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys import actors, audit

if TYPE_CHECKING:
    from apikeys.models import User


class RecordedPassword:
    """A validator that accepts every password and records the change."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept the password."""

    def password_changed(self, password: str, user: User) -> None:
        """Record the user of a changed password, but not the password."""
        del password
        actor = actors.current_actor()
        audit.authorize_and_record(
            actor, "user.password", user.pk, name=user.username, own=actor.user_id == user.pk
        )

    def get_help_text(self) -> str:
        return "The audit log records the change and the operator."
