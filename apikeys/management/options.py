"""Command options in the API's JSON formats. Invalid values raise ``CommandError``."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from rest_framework.exceptions import APIException

from apikeys import audit
from apikeys.api.serializers import CredentialSerializer
from apikeys.bindings import EVERYWHERE
from apikeys.models import User
from apikeys.networks import ANYWHERE
from apikeys.scopes import Scope
from infra_service.lib.api.fields import TimestampField
from infra_service.lib.api.identifiers import parse_uuid

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

    from rest_framework.serializers import Serializer

    from apikeys.actors import Actor

_BOUND: Final = {
    "application": ", with all current and future components",
    "component": " (use application/component for a component of an application)",
    "environment": "",
}


def add_credential_options(parser: ArgumentParser, *, required: bool) -> None:
    """Declare the shared options of keys and tokens."""
    parser.add_argument("--user", required=required, help="the user name of the owner")
    parser.add_argument("--name", required=required, help="the purpose of the credential")
    parser.add_argument("--scopes", required=required, help="comma-separated scopes (see above)")
    parser.add_argument(
        "--expires-at", help="expiry in RFC 3339, with an offset; the default is no expiry"
    )
    parser.add_argument(
        "--network",
        action="append",
        metavar="CIDR",
        help="a network from which the credential may be used; repeatable",
    )
    parser.add_argument("--cluster", metavar="NAME", help="name or id of a cluster for the binding")
    for kind, more in _BOUND.items():
        parser.add_argument(
            f"--{kind}",
            action="append",
            metavar="NAME",
            help=f"{kind} for the binding, by slug or id{more}; repeatable",
        )
    scopes = "\n".join(f"  {scope.value:<18}{scope.label}" for scope in Scope)
    parser.description = f"{parser.description}\n\nscopes:\n{scopes}"


class _PastCredentialSerializer(CredentialSerializer):
    """A credential serializer that accepts an expiry in the past."""

    expires_at = TimestampField(required=False, allow_null=True)


def read_credential_options(
    options: dict[str, Any], *, allow_past_expiry: bool = False
) -> dict[str, Any]:
    """Return the fields of a credential, validated as in the API."""
    binding: dict[str, Any] = {"cluster_id": _cluster_id(options["cluster"])}
    for kind in _BOUND:
        texts = options[kind] or ()
        binding[f"{kind}_ids"] = [text for text in texts if parse_uuid(text)] or None
        binding[f"{kind}s"] = [text for text in texts if not parse_uuid(text)] or None
    names = (name.strip() for name in options["scopes"].split(","))
    given = {
        "name": options["name"],
        "scopes": [name for name in names if name],
        "expires_at": options["expires_at"],
        "binding": binding if any(binding.values()) else None,
        "allowed_networks": options["network"],
    }
    return check_credential(given, allow_past_expiry=allow_past_expiry)


def _cluster_id(text: str | None) -> str | None:
    """Return the id of a cluster by its name. Ids and empty values are returned unchanged.

    Raises:
        CommandError: no cluster has the name.
    """
    if not text or parse_uuid(text):
        return text
    clusters = apps.get_model("workloads", "Cluster")._default_manager.filter(name=text)
    cluster_id = clusters.values_list("pk", flat=True).first()
    if cluster_id is None:
        raise CommandError(f"there is no cluster {text!r}")
    return str(cluster_id)


def check_credential(given: dict[str, Any], *, allow_past_expiry: bool = False) -> dict[str, Any]:
    """Return the fields, validated as in the API.

    Raises:
        CommandError: a field is invalid.
    """
    serializer = _PastCredentialSerializer if allow_past_expiry else CredentialSerializer
    defaults = {"expires_at": None, "binding": EVERYWHERE, "allowed_networks": ANYWHERE}
    return defaults | checked(serializer, given)


def checked(serializer_class: type[Serializer[Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields, validated as in the API.

    Raises:
        CommandError: a field is invalid.
    """
    serializer = serializer_class(data=given)
    if not serializer.is_valid():
        raise CommandError("; ".join(_faults(serializer.errors, "")))
    validated: dict[str, Any] = serializer.validated_data
    return validated


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Convert API errors of an action to command errors.

    Raises:
        CommandError: the action raised an API error.
    """
    try:
        yield
    except APIException as error:
        raise CommandError(str(error.detail)) from error


def find_or_create_user(username: str, *, create: bool, actor: Actor) -> User:
    """Return the active user. If requested, create a missing user without a password.

    Call the function in the transaction of the change.

    Raises:
        CommandError: the user is inactive, does not exist and ``create`` is false, or cannot be
            created with this name.
    """
    if "\0" in username:  # PostgreSQL rejects NUL
        raise CommandError(f"there is no user {username!r}")
    if create and not User.objects.filter(username=username).exists():
        try:
            User._meta.get_field("username").clean(username, None)
        except ValidationError as error:
            reason = " ".join(error.messages)
            raise CommandError(f"cannot create the user {username!r}: {reason}") from error
        password = {"password": make_password(None)}
        user, is_new = User.objects.get_or_create(username=username, defaults=password)
        if is_new:
            audit.authorize_and_record(actor, "user.create", user.pk, name=username)
    return find_user(username)


def find_user(username: str) -> User:
    """Return the active user.

    Raises:
        CommandError: the user does not exist or is inactive.
    """
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"there is no active user {username!r}")
    return user


def _faults(errors: Any, path: str) -> list[str]:
    if isinstance(errors, dict):
        return [f for name, e in errors.items() for f in _faults(e, f"{path}.{name}".strip("."))]
    return [f"{path}: {' '.join(map(str, errors))}"]
