"""The states that a document reads with ``terraform_remote_state`` data sources.

The configuration of a data source may contain a password. Only the settings listed here are stored.
They form the location of the state that is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import Resolver404, resolve

from apikeys.token_search import find_tokens
from states.document import format4, masking, sensitive_paths
from states.models.dependencies import MOST_BYTES, MOST_BYTES_OF_BACKEND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.format4 import Document, Instance, Resource
    from states.document.secret_values import Secrets
    from states.document.work_limit import Effort

_TYPE: Final = "terraform_remote_state"
#: The settings that form a location, by backend of Terraform and OpenTofu.
_PARTS: Final = {
    "azurerm": ("storage_account_name", "container_name", "key"),
    "consul": ("address", "path"),
    "cos": ("bucket", "prefix", "key"),
    "gcs": ("bucket", "prefix"),
    "http": ("address",),
    "kubernetes": ("namespace", "secret_suffix"),
    "local": ("path",),
    "oci": ("bucket", "key"),
    "oss": ("bucket", "prefix", "key"),
    "pg": ("schema_name",),
    "remote": ("hostname", "organization"),
    "s3": ("bucket", "key"),
}
#: Settings with network addresses, which may contain a user and a password.
_OF_NETWORK: Final = frozenset({"address", "hostname"})
_ADDRESS: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/?#]*@)?"
    r"(?P<host>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)(?P<path>/[^?#]*)?(?:[?#].*)?",
    re.ASCII,
)
#: The names of the service's own routes to a state or its outputs.
_OURS: Final = frozenset({
    "state-backend", "state-outputs-backend", "state-at", "state-in-application",
    "state-outputs-at", "state-outputs-in-application", "state-outputs-document",
})  # fmt: skip


class RemoteState(NamedTuple):
    """A state that a document reads.

    ``location`` omits possible secrets, and is empty if unknown. ``named`` contains the ids or
    slugs if the address belongs to this service.
    """

    address: str
    backend: str
    location: str
    named: tuple[tuple[str, str], ...] = ()


def find_remote_states(
    document: Document, secrets: Secrets | None, effort: Effort
) -> Iterator[RemoteState]:
    """Yield the states that the document reads, without values that it marks as sensitive."""
    for resource, instance in document.instances():
        if resource.type == _TYPE and resource.mode == "data":
            yield _remote_state(resource, instance, secrets, effort)


def _remote_state(
    resource: Resource, instance: Instance, secrets: Secrets | None, effort: Effort
) -> RemoteState:
    shown: Any = format4.decode(instance.values, effort)
    if secrets is not None:
        marks = sensitive_paths.marks_of(instance, shown, effort)
        (shown,) = masking.masked(secrets, (shown, marks))
    attributes = shown if isinstance(shown, dict) else {}
    config: Any = attributes.get("config")
    if sensitive_paths.is_dynamic(config):
        config = config["value"]
    backend = _kept(attributes.get("backend"), MOST_BYTES_OF_BACKEND)
    found = dict(_located(backend, config)) if isinstance(config, dict) else {}
    location = _kept("/".join(found.values()), MOST_BYTES)
    address = resource.address(instance)
    return RemoteState(address, backend, location, _named(location) if backend == "http" else ())


def _located(backend: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _PARTS.get(backend, ()):
        value = config.get(name)
        if isinstance(value, str) and value:
            yield name, _without_secrets(value) if name in _OF_NETWORK or "://" in value else value
    workspaces = config.get("workspaces")
    if backend == "remote" and isinstance(workspaces, dict):
        for name in ("name", "prefix"):
            if isinstance(value := workspaces.get(name), str) and value:
                yield name, value


def _without_secrets(address: str) -> str:
    """Return the scheme, host and path of an address, or "" if the form is unknown."""
    found = _ADDRESS.fullmatch(address)
    # If a password is not escaped, a part of it can match as the host.
    if found is None or "@" in address[found.end("host") :]:
        return ""
    return f"{found['scheme'] or ''}{found['host']}{found['path'] or ''}"


def _kept(text: Any, most: int) -> str:
    """Return a text if it can be stored and shown, or otherwise ""."""
    if not isinstance(text, str) or not text.isprintable():
        return ""
    written = text.encode("utf-8", "replace")
    return "" if len(written) > most or find_tokens(written) else text


def _named(location: str) -> tuple[tuple[str, str], ...]:
    """Return the ids or slugs in an address of this service, or () for other addresses."""
    found = _ADDRESS.fullmatch(location)
    if found is None or found["scheme"] not in {"http://", "https://"} or not found["path"]:
        return ()
    host, _port = split_domain_port(found["host"])
    if not validate_host(host, settings.ALLOWED_HOSTS):
        return ()
    try:
        match = resolve(unquote(found["path"]))
    except Resolver404:
        return ()
    return tuple(sorted(match.kwargs.items())) if match.url_name in _OURS else ()
