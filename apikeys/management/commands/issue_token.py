"""Issue an access token to a user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apikeys import actions
from apikeys.audit import Actor
from apikeys.models import User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    import datetime as dt
    from argparse import ArgumentParser

_KINDS = {"personal": TokenKind.PERSONAL, "service": TokenKind.SERVICE}


class Command(BaseCommand):
    """Issue a personal or service access token and print its secret, once."""

    help = "Issue an access token to a user and print its secret, which is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--kind", choices=sorted(_KINDS), default="personal")
        parser.add_argument("--user", required=True, help="the user name of its owner")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument("--scopes", required=True, help="comma-separated: " + ",".join(Scope))
        parser.add_argument("--expires-at", help="RFC 3339, with an offset; never when left out")
        parser.add_argument("--json", action="store_true", help="print id and secret as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Issue the token.

        Raises:
            CommandError: unknown user or scope, no name, a time that is past or has no offset.
        """
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"there is no active user {options['user']!r}")
        if not options["name"]:
            raise CommandError("the name is empty")
        token, secret = actions.issue_access_token(
            kind=_KINDS[options["kind"]],
            user=user,
            name=options["name"],
            scopes=_scopes(options["scopes"]),
            expires_at=_time(options["expires_at"]),
            actor=Actor(name="command issue_token"),
        )
        if options["json"]:
            self.stdout.write(json.dumps({"id": token.pk, "secret": secret}))
        else:
            self.stdout.write(f"{token.pk}\n{secret}")
            self.stderr.write("The secret is shown only now.")


def _scopes(text: str) -> list[Scope]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = sorted(set(names) - set(Scope))
    if unknown or not names:
        raise CommandError(f"unknown scopes: {', '.join(unknown) or '(none given)'}")
    return [Scope(name) for name in names]


def _time(text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError as error:
        raise CommandError(f"--expires-at: {error}") from error
    if moment is None or moment.tzinfo is None:
        raise CommandError("--expires-at is not an RFC 3339 timestamp with an offset")
    if moment <= timezone.now():
        raise CommandError("--expires-at is in the past")
    return moment
