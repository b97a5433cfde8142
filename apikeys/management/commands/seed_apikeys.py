"""Create missing API keys."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from apikeys import actions
from apikeys.actions.audited_changes import described, differences
from apikeys.actors import Actor
from apikeys.grants import Grant
from apikeys.management.options import (
    add_credential_options,
    check_credential,
    errors_for_people,
    find_or_create_user,
    read_credential_options,
)
from apikeys.models import ApiKey, User
from apikeys.usability import UnusableReason, status_word
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.error_text import reason_of

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor.of_command("seed_apikeys")
#: The exit code if some entries have no usable key.
_UNUSABLE = 3


class Command(ServiceCommand):
    """Create the keys from a file or from the arguments, atomically.

    An entry matches an unrevoked key with the same owner and name. Existing keys stay unchanged.
    The output lists the differences between keys and entries, and the reasons why keys are
    unusable. An entry with an expiry in the past creates no key.
    """

    help = (
        "Create missing API keys and print their secrets, which cannot be shown again. "
        "Unrevoked keys with the same owner and name stay unchanged. The output lists their "
        "differences from the entries."
    )
    examples = (
        "seed_apikeys --user operator --name deployments --scopes apikey:write,state:read",
        "seed_apikeys --file keys.toml --create-users --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--file",
            type=Path,
            help="a TOML file with [[api_keys]] tables, instead of a single key",
        )
        parser.add_argument("--create-users", action="store_true", help="create missing owners")
        add_credential_options(parser, required=False)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the keys.

        Raises:
            CommandError: the file is missing or invalid, a user is unknown, or a field is invalid.
                With exit code 3, the missing keys were created, but some entries have no usable
                key.
        """
        wanted = _from_file(options["file"]) if options["file"] else [_from_options(options)]
        with transaction.atomic():
            outcomes = [_seed(create_user=options["create_users"], **key) for key in wanted]
            self.report({"api_keys": outcomes}, *map(_line, outcomes))
        if unusable := sum(outcome["unusable_reason"] is not None for outcome in outcomes):
            raise CommandError(
                f"{unusable} of {len(outcomes)} entries have no usable key",
                returncode=_UNUSABLE,
            )


def _line(outcome: dict[str, Any]) -> str:
    result = outcome["secret"] or ("exists" if outcome["id"] else "is not created")
    if reason := outcome["unusable_reason"]:
        result += f", and does not work: {status_word(reason).lower()}"
    for name, values in outcome["differs"].items():
        result += f"; {name} is {json.dumps(values['is'])}, not {json.dumps(values['asked'])}"
    named = filter(None, (outcome["user"], outcome["name"], outcome["id"], result))
    return " ".join(named)


def _from_options(options: dict[str, Any]) -> dict[str, Any]:
    missing = [f"--{name}" for name in ("user", "name", "scopes") if not options[name]]
    if missing:
        raise CommandError(f"specify --file, or {', '.join(missing)}")
    return {
        "user": options["user"],
        "fields": read_credential_options(options, allow_past_expiry=True),
    }


def _from_file(path: Path) -> list[dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text())["api_keys"]
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    except KeyError:
        tables = None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CommandError(f"{path}: there are no [[api_keys]] tables")
    wanted = []
    for number, table in enumerate(tables, 1):
        fields = {
            name: value.isoformat() if isinstance(value, dt.datetime) else value
            for name, value in table.items()
        }
        try:
            user = fields.pop("user")
            wanted.append(
                {"user": str(user), "fields": check_credential(fields, allow_past_expiry=True)}
            )
        except KeyError as error:
            raise CommandError(f"{path}: api_keys {number}: user is missing") from error
        except CommandError as error:
            raise CommandError(f"{path}: api_keys {number}: {error}") from error
    return wanted


def _seed(*, user: str, fields: dict[str, Any], create_user: bool) -> dict[str, Any]:
    # The lock prevents two simultaneous runs from both creating a missing key.
    owner = User.objects.select_for_update().get(
        pk=find_or_create_user(user, create=create_user, actor=_ACTOR).pk
    )
    key = (
        ApiKey.objects.filter(created_by=owner, name=fields["name"], revoked_at=None)
        .with_status()
        .first()
    )
    outcome: dict[str, Any] = {
        "user": user,
        "name": fields["name"],
        "id": None,
        "created": False,
        "secret": None,
        "differs": {},
        "unusable_reason": None,
    }
    if key is not None:
        differs = _differences(key, **fields)
        reason = key.unusable_reason
        return outcome | {"id": key.pk, "differs": differs, "unusable_reason": reason}
    if fields["expires_at"] is not None and fields["expires_at"] <= timezone.now():
        return outcome | {"unusable_reason": UnusableReason.EXPIRED.value}
    with errors_for_people():
        key, secret = actions.create_api_key(user_id=owner.pk, actor=_ACTOR, **fields)
    return outcome | {"id": key.pk, "created": True, "secret": secret}


def _differences(key: ApiKey, **requested: Any) -> dict[str, Any]:
    """Return the differences between the key and the entry: actual and expected values."""
    name, scopes = requested.pop("name"), frozenset(requested.pop("scopes"))
    grant = Grant(scopes, networks=requested.pop("allowed_networks"), **requested)
    wanted = ApiKey(name=name, **grant.columns())
    found = differences(described(key), described(wanted))
    return {thing: {"is": each["from"], "asked": each["to"]} for thing, each in found.items()}
