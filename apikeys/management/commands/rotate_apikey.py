"""Rotate the secret of an API key."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.db import transaction

from apikeys import actions
from apikeys.actors import Actor
from apikeys.errors import GracePeriodOutOfRange
from apikeys.management.options import errors_for_people
from apikeys.models import ApiKey
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Rotate a key, and print its new secret once."""

    help = (
        "Replace the secret of an API key and print the new secret, which cannot be "
        "shown again. The old secret expires immediately, or after the grace period. "
        "After a leak, revoke the key instead."
    )
    examples = (
        "rotate_apikey key-0123456789abcdefghijklmno",
        "rotate_apikey key-0123456789abcdefghijklmno --grace-period 3600 --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="the key's id (key-…)")
        parser.add_argument(
            "--grace-period",
            type=int,
            default=0,
            metavar="SECONDS",
            help="grace period of the old secret, at most seven days",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Rotate the key.

        Raises:
            CommandError: the key is unknown or has expired, or the grace period is out of range.
        """
        with transaction.atomic(), errors_for_people():
            secret = actions.rotate_api_key(
                keys=ApiKey.objects.all(),
                key_id=options["id"],
                grace_period=_period(options["grace_period"]),
                actor=Actor.of_command("rotate_apikey"),
            )
            self.report({"id": options["id"], "secret": secret}, options["id"], secret)
        if not options["json"]:
            self.note("The secret is shown only once.")


def _period(seconds: int) -> dt.timedelta:
    """Return the duration.

    Raises:
        GracePeriodOutOfRange: Python cannot represent the duration.
    """
    try:
        return dt.timedelta(seconds=seconds)
    except OverflowError as error:
        raise GracePeriodOutOfRange(actions.MAX_GRACE_PERIOD) from error
