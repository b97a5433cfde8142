"""Revoke an API key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from apikeys import actions
from apikeys.audit import Actor
from apikeys.models import ApiKey

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Revoke an API key, and with it every token minted from it. Final, and idempotent."""

    help = "Revoke an API key, and with it every token that was minted from it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("id", help="the key's id, key-…")
        parser.add_argument("--json", action="store_true", help="print id and outcome as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Revoke the key.

        Raises:
            CommandError: there is no such key.
        """
        key = ApiKey.objects.filter(pk=options["id"]).first()
        if key is None:
            raise CommandError("there is no such key")
        changed = actions.revoke_api_key(key=key, actor=Actor(name="command revoke_apikey"))
        if options["json"]:
            self.stdout.write(json.dumps({"id": key.pk, "revoked": True, "changed": changed}))
        else:
            self.stdout.write(f"{key.pk} {'revoked' if changed else 'was revoked already'}")
