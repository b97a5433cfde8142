"""Revoke an API key or an access token."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db.models import Q
from django.utils import timezone

from apikeys import actions, tokens
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey
from infra_service.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Revoke a key or a token, and all that descends from it. Final, and idempotent."""

    help = (
        "Revoke an API key, and with it every token that was minted from it and every key that it "
        "made, or an access token. A leaked secret can be fed in as it is."
    )
    examples = ("revoke_apikey key-0123456789abcdefghijklmno", "revoke_apikey - < leaked.txt")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "credential",
            help="its id (key-… or tok-…), or its secret; '-' reads that from standard input, "
            "which leaves no trace in the shell's history and in the list of processes",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Revoke it.

        Raises:
            CommandError: there is no such key or token; what was given is not repeated.
        """
        given = options["credential"]
        credential = _find((sys.stdin.readline() if given == "-" else given).strip())
        actor = Actor.of_command("revoke_apikey")
        if isinstance(credential, ApiKey):
            revoked = actions.revoke_api_key(key=credential, actor=actor)
        elif credential is not None:
            revoked = actions.revoke_access_token(token=credential, actor=actor)
        else:
            raise CommandError("there is no such key or token")
        descendants = max(revoked - 1, 0)
        also = f", and {descendants} that descended from it" if descendants else ""
        self.report(
            {
                "id": credential.pk,
                "revoked": True,
                "changed": bool(revoked),
                "descendants": descendants,
            },
            f"{credential.pk} revoked{also}" if revoked else f"{credential.pk} was revoked already",
        )


def _find(text: str) -> ApiKey | AccessToken | None:
    """Return what the text names, by its id or by a secret that works, or did until it ended."""
    is_secret = tokens.kind_of(text) is not None
    key, token = Q(pk=text), Q(pk=text)
    if is_secret:
        digest = tokens.digest(text)
        previous = Q(previous_digest=digest, previous_digest_expires_at__gt=timezone.now())
        key, token = Q(digest=digest) | previous, Q(digest=digest)
    return ApiKey.objects.filter(key).first() or AccessToken.objects.filter(token).first()
