"""TOML files with issuers and trust policies for ``manage.py trust``."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import connection, transaction

from apikeys import actions
from apikeys.actors import Actor
from apikeys.api.federation_serializers import IssuerSerializer, TrustPolicySerializer
from apikeys.bindings import EVERYWHERE
from apikeys.federation import kinds
from apikeys.federation.platforms import PLATFORMS
from apikeys.management.options import checked, errors_for_people, find_or_create_user
from apikeys.models import Issuer, TrustPolicy
from apikeys.networks import ANYWHERE
from infra_service.lib.error_text import reason_of

if TYPE_CHECKING:
    from pathlib import Path

ACTOR: Final = Actor.of_command("trust")
#: Defaults of omitted values in a table.
_OF_ISSUER: Final = {
    "jwks_url": "", "inline_keys": None, "ca": "", "max_assertion_seconds": 3600,
}  # fmt: skip
_OF_POLICY: Final = {
    "expires_at": None, "binding": EVERYWHERE, "allowed_networks": ANYWHERE,
    "max_token_seconds": 3600,
}  # fmt: skip


def apply_file(
    path: Path, *, create_users: bool, prune: bool, dry_run: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Apply the file atomically, and return the outcomes of issuers and of policies.

    Raises:
        CommandError: the file is missing or invalid, a user or issuer is unknown, or an action is
            refused.
    """
    tables = _tables(path)
    with transaction.atomic():
        _wait_for_other_runs()
        issuers = _all_applied(path, "issuers", _issuer, tables["issuers"])
        ids = {issuer["name"]: issuer["id"] for issuer in issuers}
        apply_policy = partial(_policy, ids=ids, create_users=create_users)
        policies = _all_applied(path, "trust_policies", apply_policy, tables["trust_policies"])
        if prune:
            policies += _prune(policies)
        transaction.set_rollback(dry_run)
    return issuers, policies


def _prune(applied: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Disable policies of the file's owners that operators created and that the file omits.

    Policies created through an API key remain enabled, because the user of the key manages them.
    """
    others = TrustPolicy.objects.filter(
        owner__username__in={policy["owner"] for policy in applied},
        disabled_at=None,
        maker=None,
        maker_token_id="",
    ).exclude(pk__in=[policy["id"] for policy in applied])
    pruned = []
    for policy in others.select_related("owner").order_by("owner__username", "name", "pk"):
        actions.disable_trust_policy(policy=policy, actor=ACTOR)
        found = {"name": policy.name, "owner": policy.owner.username, "id": policy.pk}
        pruned.append({**found, "result": "disabled", "warnings": []})
    return pruned


def _wait_for_other_runs() -> None:
    """Wait for concurrent runs, so that two runs cannot add the same row.

    SQLite needs no lock, because it has a single writer.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('manage.py trust'))")


def _tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        read = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    found: dict[str, Any] = {"issuers": [], "trust_policies": [], **read}
    for name, tables in found.items():
        if name not in ("issuers", "trust_policies"):
            raise CommandError(f"{path}: unknown key {name}")
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise CommandError(f"{path}: {name} must be [[{name}]] tables")
    if not any(found.values()):
        raise CommandError(f"{path}: there are no [[issuers]] and no [[trust_policies]] tables")
    return found


def _all_applied(path: Path, kind: str, apply: Any, tables: list[Any]) -> list[dict[str, Any]]:
    """Apply the tables in order. Refuse a second table for the same issuer or policy."""
    applied: dict[str, dict[str, Any]] = {}
    for number, table in enumerate(tables, 1):
        found = _applied(path, kind, number, apply, table)
        if found["id"] in applied:
            raise CommandError(f"{path}: {kind} {number}: {found['name']!r} is defined twice")
        applied[found["id"]] = found
    return list(applied.values())


def _applied(path: Path, kind: str, number: int, apply: Any, table: Any) -> Any:
    fields = {
        name: value.isoformat() if isinstance(value, dt.datetime) else value
        for name, value in table.items()
    }
    try:
        _read_files(fields, path.parent)
        with errors_for_people():
            return apply(fields)
    except CommandError as error:
        raise CommandError(f"{path}: {kind} {number}: {error}") from error


def _read_files(fields: dict[str, Any], folder: Path) -> None:
    """Replace the paths in ``ca_file`` and ``inline_keys_file`` with the contents of the files.

    Relative paths are relative to ``folder``, which contains the TOML file.
    """
    try:
        if "ca_file" in fields:
            fields["ca"] = (folder / fields.pop("ca_file")).read_text()
        if "inline_keys_file" in fields:
            fields["inline_keys"] = json.loads(
                (folder / fields.pop("inline_keys_file")).read_text()
            )
        json.dumps(fields.get("inline_keys"))  # fails for a date, which TOML supports
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CommandError(reason_of(error)) from error


def _issuer(given: dict[str, Any]) -> dict[str, Any]:
    fields = checked(IssuerSerializer, given)
    platform = PLATFORMS[fields["kind"]]
    usual = {"url": platform.url, "algorithms": list(platform.algorithms)}
    fields = {**_OF_ISSUER, **usual, **fields}
    found = _only(Issuer.objects.filter(name=fields["name"], disabled_at=None))
    if found is None:
        issuer = actions.create_issuer(fields=fields, actor=ACTOR)
    else:
        actions.change_issuer(issuer_id=found.pk, changes=fields, actor=ACTOR)
        issuer = Issuer.objects.get(pk=found.pk)
    return {"name": issuer.name, "id": issuer.pk, "result": _result(found, issuer)}


def _policy(given: dict[str, Any], ids: dict[str, str], *, create_users: bool) -> dict[str, Any]:
    names = {}
    for name in ("issuer", "owner"):
        if not isinstance(given.get(name), str):
            raise CommandError(f"{name} is missing")
        if "\0" in given[name]:  # PostgreSQL rejects NUL
            raise CommandError(f"{name} contains NUL")
        names[name] = given.pop(name)
    # A name alone could match an issuer that another person registered.
    issuer = Issuer.objects.filter(pk=ids.get(names["issuer"], names["issuer"])).first()
    if issuer is None:
        raise CommandError(f"the issuer {names['issuer']!r} is not in the file, and is not an id")
    owner = find_or_create_user(names["owner"], create=create_users, actor=ACTOR)
    fields = {**_OF_POLICY, **checked(TrustPolicySerializer, {**given, "issuer_id": issuer.pk})}
    policies = TrustPolicy.objects.filter(owner=owner)
    found = _only(policies.filter(name=fields["name"], disabled_at=None))
    if found is None:
        policy = actions.create_trust_policy(owner_id=owner.pk, actor=ACTOR, **fields)
    else:
        actions.change_trust_policy(
            policies=policies, policy_id=found.pk, changes=fields, actor=ACTOR
        )
        policy = policies.get(pk=found.pk)
    return {
        "name": policy.name,
        "owner": owner.username,
        "id": policy.pk,
        "result": _result(found, policy),
        "warnings": kinds.policy_warnings(issuer.kind, policy.conditions),
    }


def _only(rows: Any) -> Any:
    """Return the only row, if any.

    Raises:
        CommandError: several rows match the name.
    """
    found = list(rows.order_by("pk")[:2])
    if len(found) > 1:
        raise CommandError(
            f"several objects have this name: {found[0].pk} and {found[1].pk}. Disable one of them"
        )
    return found[0] if found else None


def _result(before: Any, after: Any) -> str:
    if before is None:
        return "created"
    return "unchanged" if before.revision == after.revision else "changed"
