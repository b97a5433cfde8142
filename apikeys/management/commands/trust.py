"""Apply issuers and trust policies from a file, list them, or disable them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import transaction
from rest_framework import serializers

from apikeys import actions
from apikeys.actions.trust_policies import endings
from apikeys.management.trust_file import ACTOR, apply_file
from apikeys.models import Issuer, TrustPolicy
from infra_service.lib.api.fields import TimestampField
from infra_service.lib.commandline import tables
from infra_service.lib.commandline.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

_HEADINGS: Final = ("ID", "OWNER", "NAME", "ISSUER", "STATUS", "LAST USED", "EXPIRES", "SCOPES")


class _ListedIssuer(serializers.Serializer[Any]):
    """The JSON output for an issuer."""

    id = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    url = serializers.CharField()
    disabled_at = TimestampField()


class _ListedPolicy(serializers.Serializer[Any]):
    """The JSON output for a trust policy."""

    id = serializers.CharField()
    owner = serializers.CharField(source="owner.username")
    name = serializers.CharField()
    issuer_id = serializers.CharField()
    scopes = serializers.JSONField()
    made_by = serializers.CharField()
    unusable_reason = serializers.SerializerMethodField()
    last_used_at = TimestampField()
    expires_at = TimestampField()

    def get_unusable_reason(self, policy: TrustPolicy) -> str | None:
        """Return the first reason why the policy issues no tokens."""
        return _unusable_reason(policy)


class Command(ServiceCommand):
    """Apply a file of issuers and policies atomically, list issuers and policies, or disable them.

    The name identifies an issuer. The owner and the name identify a policy.
    """

    help = (
        "Create or update the issuers and trust policies of a TOML file, in one transaction. "
        "Issuers are identified by name, policies by owner and name. Objects that are not in the "
        "file stay unchanged, unless --prune is given. Alternatively, list issuers and policies, "
        "or permanently disable some of them, which also invalidates their tokens."
    )
    examples = (
        "trust --list",
        "trust --file trust.toml --prune --dry-run",
        "trust --file trust.toml --create-users --json",
        "trust --disable fed-0123456789abcdefghijklmno",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument(
            "--file",
            type=Path,
            help="a TOML file with [[issuers]] and [[trust_policies]] tables",
        )
        chosen.add_argument(
            "--list", action="store_true", help="list the issuers and policies, without changes"
        )
        chosen.add_argument(
            "--disable", nargs="+", metavar="ID", help="disable these policies and issuers"
        )
        parser.add_argument(
            "--all",
            action="store_true",
            help="with --list: also list disabled issuers and policies",
        )
        parser.add_argument("--create-users", action="store_true", help="create missing owners")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="with --file: disable all other policies of the owners in the file, except "
            "policies created with an API key or token",
        )
        parser.add_argument("--dry-run", action="store_true", help="only show the changes")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Apply, list or disable issuers and policies.

        Raises:
            CommandError: the file is missing or invalid, a user, issuer or policy is unknown, or an
                action is refused.
        """
        if options["prune"] and options["file"] is None:
            raise CommandError("--prune needs --file")
        if options["list"]:
            self._list(with_disabled=options["all"])
        elif options["disable"]:
            self._disable(options["disable"], dry_run=options["dry_run"])
        else:
            self._apply(options)

    def _apply(self, options: dict[str, Any]) -> None:
        given = {name: options[name] for name in ("create_users", "prune", "dry_run")}
        issuers, policies = apply_file(options["file"], **given)
        if options["dry_run"]:
            for each in (*issuers, *policies):
                each["id"] = None if each["result"] == "created" else each["id"]
        outcome = {"dry_run": options["dry_run"], "issuers": issuers, "trust_policies": policies}
        self.report(outcome, *_lines(issuers, policies))

    def _list(self, *, with_disabled: bool) -> None:
        which = {} if with_disabled else {"disabled_at": None}
        issuers = Issuer.objects.filter(**which).order_by("name", "pk")
        policies = list(
            TrustPolicy.objects.filter(**which)
            .select_related("owner", "issuer")
            .order_by("owner__username", "name", "pk")
        )
        listed = {
            "issuers": _ListedIssuer(issuers, many=True).data,
            "trust_policies": _ListedPolicy(policies, many=True).data,
        }
        shown = (
            f"issuer {tables.printable(issuer.name)} {issuer.pk} {issuer.kind} {issuer.url}"
            + (" disabled" if issuer.disabled_at else "")
            for issuer in issuers
        )
        self.report(listed, *shown, *tables.lines(_HEADINGS, [_row(policy) for policy in policies]))

    def _disable(self, ids: list[str], *, dry_run: bool) -> None:
        with transaction.atomic():
            found = [_find(each) for each in ids]
            for each in found:
                if isinstance(each, Issuer):
                    actions.disable_issuer(issuer_id=each.pk, actor=ACTOR)
                else:
                    actions.disable_trust_policy(policy=each, actor=ACTOR)
            transaction.set_rollback(dry_run)
        changed = {each.pk: each.disabled_at is None for each in found}
        self.report(
            {
                "dry_run": dry_run,
                "disabled": [{"id": pk, "changed": is_new} for pk, is_new in changed.items()],
            },
            *(
                f"{pk} disabled" if is_new else f"{pk} was already disabled"
                for pk, is_new in changed.items()
            ),
        )


def _find(text: str) -> Issuer | TrustPolicy:
    for model in (TrustPolicy, Issuer):
        found: Issuer | TrustPolicy | None = model._default_manager.filter(pk=text).first()
        if found is not None:
            return found
    raise CommandError(f"there is no trust policy or issuer {text!r}; no object was disabled")


def _unusable_reason(policy: TrustPolicy) -> str | None:
    return next((reason for reason, _because in endings(policy)), None)


def _row(policy: TrustPolicy) -> tuple[str, ...]:
    return (
        policy.pk,
        policy.owner.username,
        tables.printable(policy.name),
        tables.printable(policy.issuer.name or policy.issuer.url),
        (_unusable_reason(policy) or "active").replace("_", " "),
        tables.moment(policy.last_used_at),
        tables.moment(policy.expires_at),
        ",".join(policy.scopes),
    )


def _lines(issuers: list[dict[str, Any]], policies: list[dict[str, Any]]) -> Iterator[str]:
    for issuer in issuers:
        yield f"issuer {issuer['name']} {_of(issuer)}"
    for policy in policies:
        yield f"policy {policy['owner']} {policy['name']} {_of(policy)}"
        yield from (f"  warning: {warning}" for warning in policy["warnings"])


def _of(outcome: dict[str, Any]) -> str:
    return f"{outcome['id'] or '(new)'} {outcome['result']}"
