"""Deactivate a person or a machine account, with all keys, tokens, policies and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from apikeys import actions
from apikeys.actions.owned import OWNED
from apikeys.actors import Actor
from apikeys.models import User
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR: Final = Actor.of_command("deactivate_user")


class Command(ServiceCommand):
    """Deactivate a user. Idempotent."""

    help = (
        "Deactivate a user. The user's sessions expire, and the service immediately rejects the "
        "user's keys, tokens and trust policies, and stops the user's webhooks, until an operator "
        "reactivates the user in the admin. With --revoke, also permanently revoke the keys and "
        "tokens, and disable the trust policies and the webhooks without a key."
    )
    examples = (
        "deactivate_user ada --dry-run",
        "deactivate_user ada",
        "deactivate_user ada --revoke --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="the user name")
        parser.add_argument(
            "--revoke",
            action="store_true",
            help="permanently revoke the user's keys and tokens, and disable the trust policies "
            "and the webhooks without a key",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only count the affected keys, tokens, policies and webhooks",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Deactivate the user.

        Raises:
            CommandError: the user does not exist, or is the last active superuser.
        """
        username = options["username"]
        with transaction.atomic():
            user = User.objects.filter(username=username).first()
            if user is None:
                raise CommandError(f"there is no user {username!r}")
            counts = {kind.plural: kind.enabled(user).count() for kind in OWNED}
            try:
                changed = actions.deactivate_user(user=user, actor=_ACTOR)
            except ValidationError as error:
                raise CommandError(error.message) from None
            if options["revoke"]:
                actions.revoke_credentials(user=user, actor=_ACTOR)
            transaction.set_rollback(options["dry_run"])
        done = "would be deactivated" if options["dry_run"] else "deactivated"
        numbers = ", ".join(f"{n} {plural}" for plural, n in counts.items())
        effect = "revoked" if options["revoke"] else "refused"
        self.report(
            {
                "user": username,
                "changed": changed,
                "revoked": options["revoke"],
                "dry_run": options["dry_run"],
                **{plural.lower().replace(" ", "_"): n for plural, n in counts.items()},
            },
            f"{username} {done if changed else 'was already inactive'}",
            f"{effect}: {numbers}",
        )
