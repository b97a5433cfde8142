"""List API keys and access tokens without secrets."""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentTypeError
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.utils import timezone
from rest_framework import serializers

from apikeys.api.binding_serializers import BindingSerializer
from apikeys.models import AccessToken, ApiKey, User
from apikeys.usability import status_word
from infra_service.lib.api.fields import TimestampField
from infra_service.lib.commandline import tables
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

    from apikeys.bindings import Binding

_API_KEY: Final = "API_KEY"
_MOST_DAYS: Final = 36_500
_HEADINGS: Final = (
    "ID",
    "OWNER",
    "KIND",
    "NAME",
    "STATUS",
    "LAST USED",
    "EXPIRES",
    "BINDING",
    "SCOPES",
)


class _Listed(serializers.Serializer[Any]):
    """The JSON output for a key or a token."""

    id = serializers.CharField()
    owner = serializers.CharField(source="created_by.username")
    kind = serializers.CharField(default=_API_KEY)
    name = serializers.CharField()
    scopes = serializers.JSONField()
    binding = BindingSerializer()
    allowed_networks = serializers.JSONField()
    status = serializers.CharField()
    unusable_reason = serializers.CharField()
    last_used_at = TimestampField()
    last_used_address = serializers.CharField()
    expires_at = TimestampField(source="expiry")


class Command(ServiceCommand):
    """List credentials with their owners, grants and expiry."""

    help = (
        "List API keys and access tokens that are neither expired nor revoked, with owner, "
        "kind, scopes, binding, last use and expiry. The status shows whether the service "
        "rejects a credential because the owner is inactive or idle. The output contains no "
        "secrets."
    )
    examples = (
        "list_credentials",
        "list_credentials --user operator --all --json",
        "list_credentials --expiring 30d",
        "list_credentials --owners-idle-for 90",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", help="the user name of an owner; the default is all owners")
        parser.add_argument(
            "--all", action="store_true", help="include expired and revoked credentials"
        )
        parser.add_argument(
            "--expiring",
            type=_days,
            metavar="DAYS",
            help="only usable API keys and operator-issued tokens that expire within a number of "
            "days, such as 30d",
        )
        parser.add_argument(
            "--owners-idle-for",
            type=int,
            metavar="DAYS",
            help="only credentials of owners who have not signed on to the admin for a number "
            "of days; the service rejects credentials only after OWNER_IDLE_DAYS",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """List the credentials.

        Raises:
            CommandError: the user does not exist, or the number of days is out of range.
        """
        user, days = options["user"], options["owners_idle_for"]
        owned: dict[str, Any] = {}
        if user is not None:
            if not User.objects.filter(username=user).exists():
                raise CommandError(f"there is no user {user!r}")
            owned["created_by__username"] = user
        if days is not None:
            if not 0 <= days <= _MOST_DAYS:
                raise CommandError(f"--owners-idle-for must be from 0 to {_MOST_DAYS} days")
            owned["created_by__in"] = User.objects.idle(days, timezone.now())
        found = list(chain.from_iterable(_found(owned, options["expiring"], all_=options["all"])))
        self.report(
            {"credentials": _Listed(found, many=True).data},
            *tables.lines(_HEADINGS, [_row(credential) for credential in found]),
        )


def _days(text: str) -> dt.timedelta:
    """Parse a number of days, such as '30d' or '30'.

    Raises:
        ArgumentTypeError: the text is not a number of days from 1 to 36500.
    """
    digits = text.removesuffix("d")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:6]) <= _MOST_DAYS:
        raise ArgumentTypeError(f"{text!r} is not a number of days, such as 30d")
    return dt.timedelta(days=int(digits[:6]))


def _found(owned: dict[str, Any], expiring: dt.timedelta | None, *, all_: bool) -> Iterator[Any]:
    for credentials, secrets in (
        (ApiKey.objects.all(), ("digest", "previous_digest")),
        (AccessToken.objects.select_related("api_key", "trust_policy"), ("digest",)),
    ):
        if expiring is not None:
            shown = credentials.issued().expiring(expiring)
        else:
            shown = credentials if all_ else credentials.active()
        yield (
            shown.filter(**owned)
            .with_status()
            .select_related("created_by")
            .defer(*secrets)
            .order_by("created_by__username", "pk")
        )


def _row(credential: Any) -> tuple[str, ...]:
    return (
        credential.pk,
        credential.created_by.username,
        getattr(credential, "kind", _API_KEY),
        tables.printable(credential.name),
        status_word(credential.unusable_reason).lower(),
        tables.moment(credential.last_used_at),
        tables.moment(credential.expiry),
        _where(credential.binding),
        ",".join(credential.scopes),
    )


def _where(binding: Binding) -> str:
    """Return all ids of the binding as text without spaces."""
    bound = (f"{kind}={','.join(ids)}" for kind, ids in binding.ids_by_kind.items())
    return ";".join(bound) or "everywhere"
