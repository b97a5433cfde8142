"""Revoke an API key or an access token."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db.models import Q
from django.template.defaultfilters import pluralize
from django.utils import timezone

from apikeys import actions, tokens
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey
from apikeys.token_search import find_tokens
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Revoke a key or a token permanently, with all its descendants. Idempotent."""

    help = (
        "Revoke an API key or an access token, with all keys and tokens that descend from it, and "
        "disable the trust policies that it created. The command ignores text around a leaked "
        "secret, such as a header or an assignment."
    )
    examples = ("revoke_apikey key-0123456789abcdefghijklmno", "revoke_apikey - < leaked.txt")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "credential",
            help="the id (key-… or tok-…) or the secret; '-' reads the secret from standard input, "
            "which keeps it out of the shell history and the process list",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Revoke the credential.

        Raises:
            CommandError: the key or token is unknown. The message never repeats the argument.
        """
        given = options["credential"]
        credential, old_secret = _find(_read_line() if given == "-" else given)
        actor = Actor.of_command("revoke_apikey")
        if isinstance(credential, ApiKey):
            revoked = actions.revoke_api_key(key=credential, actor=actor)
        else:
            revoked = actions.revoke_access_token(token=credential, actor=actor)
        descendants = max(revoked - 1, 0)
        also = f", with {descendants} descendant{pluralize(descendants)}" if descendants else ""
        line = (
            f"{credential.pk} revoked{also}" if revoked else f"{credential.pk} was already revoked"
        )
        if old_secret:
            line += "; the text contained the old secret, and the new secret is also revoked"
        self.report(
            {
                "id": credential.pk,
                "revoked": True,
                "changed": bool(revoked),
                "descendants": descendants,
                "old_secret": old_secret,
            },
            line,
        )


def _read_line() -> str:
    """Read a line from standard input. It may contain text that is not UTF-8."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin.readline()


def _find(text: str) -> tuple[ApiKey | AccessToken, bool]:
    """Return the key or token in the text, and whether the text contains the key's old secret.

    The text is an id, a secret, or a header or assignment that contains a secret.

    Raises:
        CommandError: the credential is unknown, its old secret has expired, or the text contains
            several secrets.
    """
    # An argument that is not UTF-8 contains surrogates. PostgreSQL rejects NUL characters.
    text = text.encode(errors="replace").decode().replace("\0", "")
    secrets = find_tokens(text.encode())
    if len(secrets) > 1:
        raise CommandError("the text contains several secrets; pass them one at a time")
    if not secrets:
        return _found(Q(pk=text.strip().strip("\"'"))), False
    digest = tokens.digest(secrets[0])
    rotated = ApiKey.objects.filter(previous_digest=digest).first()
    if rotated is None:
        return _found(Q(digest=digest)), False
    if rotated.previous_digest_expires_at <= timezone.now():
        raise CommandError(
            f"this is an expired old secret of {rotated.pk}; nothing was revoked. Pass the id "
            "to revoke the key"
        )
    return rotated, True


def _found(condition: Q) -> ApiKey | AccessToken:
    for model in (ApiKey, AccessToken):
        found: ApiKey | AccessToken | None = model._default_manager.filter(condition).first()
        if found is not None:
            return found
    raise CommandError(
        "no key or token matches. For a rotated key, pass the current or the previous secret, "
        "or the id"
    )
