"""Issue an access token to a user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apikeys import actions
from apikeys.audit import Actor
from apikeys.management.base import ServiceCommand
from apikeys.management.options import (
    add_credential_options,
    find_user,
    read_credential_options,
    told,
)
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from argparse import ArgumentParser

_KINDS = {"personal": TokenKind.PERSONAL, "service": TokenKind.SERVICE}


class Command(ServiceCommand):
    """Issue a personal or service access token and print its secret, once."""

    help = "Issue an access token to a user and print its secret, which is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--kind", choices=sorted(_KINDS), default="personal")
        add_credential_options(parser, required=True)
        parser.add_argument("--json", action="store_true", help="print id and secret as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Issue the token.

        Raises:
            CommandError: unknown user or scope, no name, a time that is past or has no offset.
        """
        user = find_user(options["user"])
        with told():
            token, secret = actions.issue_access_token(
                kind=_KINDS[options["kind"]],
                user=user,
                actor=Actor.of_command("issue_token"),
                **read_credential_options(options),
            )
        if options["json"]:
            self.stdout.write(json.dumps({"id": token.pk, "secret": secret}))
        else:
            self.stdout.write(f"{token.pk}\n{secret}")
            self.stderr.write("The secret is shown only now.")
