"""Issue an access token to a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from apikeys import actions
from apikeys.actors import Actor
from apikeys.management.options import (
    add_credential_options,
    errors_for_people,
    find_user,
    read_credential_options,
)
from apikeys.tokens import TokenKind
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser

_KINDS = {"personal": TokenKind.PERSONAL, "service": TokenKind.SERVICE}


class Command(ServiceCommand):
    """Issue a personal or service access token, and print its secret once."""

    help = "Issue an access token to a user and print its secret, which cannot be shown again."
    examples = (
        "issue_token --user operator --name laptop --scopes state:read,state:write",
        "issue_token --user ci --name plan --kind service --scopes state:read --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--kind",
            choices=sorted(_KINDS),
            default="personal",
            help="personal for a person, service for a program",
        )
        add_credential_options(parser, required=True)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Issue the token.

        Raises:
            CommandError: the user or a scope is unknown, the name is missing, or the expiry is in
                the past or has no offset.
        """
        user = find_user(options["user"])
        with transaction.atomic(), errors_for_people():
            token, secret = actions.issue_access_token(
                kind=_KINDS[options["kind"]],
                user=user,
                actor=Actor.of_command("issue_token"),
                **read_credential_options(options),
            )
            self.report({"id": token.pk, "secret": secret}, token.pk, secret)
        if not options["json"]:
            self.note("The secret is shown only once.")
