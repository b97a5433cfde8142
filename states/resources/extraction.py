"""Extract resources, dependencies, failing checks and the Terraform version from a document.

Identifiers are stored only as digests. Values that the state marks as sensitive are excluded. The
values of resource types with secret ids, or with ids derived from secrets, are also excluded.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from states.document import check_results, format4, masking, sensitive_paths
from states.document.concurrency import limited_reading
from states.document.numbers import number_text
from states.errors import StateFormatUnsupported, StateTooComplex
from states.models.resource_counts import Amount, Counted, Kind
from states.models.resources import MOST_BYTES, MOST_BYTES_OF_MODE
from states.resources.cluster_objects import cluster_object, metadata_of
from states.resources.digests import digest
from states.resources.remote_states import RemoteState, find_remote_states

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

    from states.document.contents import LoadedDocument
    from states.document.format4 import Document, Instance, Resource
    from states.document.secret_values import Secrets
    from states.document.work_limit import Effort

#: Maximum resource instances per state. More would need the memory of several documents.
MOST_RESOURCES: Final = 100_000
#: Maximum characters of a version of Terraform or OpenTofu.
_MOST_OF_VERSION: Final = 100
#: Attributes that identify a resource of any type.
_IDENTIFYING: Final = ("id", "arn", "self_link", "name")
#: Providers with ids that are or may contain secrets, such as a random text, a token in a URL, or
#: the digest of a file. Older providers do not mark these ids as sensitive.
_SECRET_PROVIDERS: Final = frozenset({
    "random", "tls", "vault", "external", "http", "local", "template", "sops", "pkcs12", "jwt",
    "htpasswd", "bcrypt", "onepassword", "bitwarden", "doppler", "infisical",
})  # fmt: skip


class NamesTooLongError(Exception):
    """A name that is too long for an index, or that PostgreSQL cannot store as text."""


class Found(NamedTuple):
    """A resource instance, as it is indexed."""

    address: str
    deposed: str
    module: str
    mode: str
    type: str
    name: str
    index_key: int | str | None
    provider: str
    cluster_object: str | None
    digests: frozenset[uuid.UUID]


#: The columns of an index row.
COLUMNS: Final = Found._fields[:-1]


class Contents(NamedTuple):
    """The index data of a document."""

    resources: Sequence[Found] = ()
    terraform_version: str = ""
    remote_states: Sequence[RemoteState] = ()
    failing_checks: Sequence[str] = ()

    @property
    def amounts(self) -> dict[Counted, Amount]:
        """Return the counts of the document. A deposed object counts as a resource."""
        managed: Counter[Counted] = Counter()
        data: Counter[Counted] = Counter()
        for one in self.resources:
            of_mode = data if one.mode == "data" else managed
            for kind, value in ((Kind.PROVIDER, one.provider), (Kind.RESOURCE_TYPE, one.type)):
                if value:
                    of_mode[Counted(kind, value)] += 1
        found = {key: Amount(managed[key], data[key]) for key in managed.keys() | data.keys()}
        if self.terraform_version:
            found[Counted(Kind.TERRAFORM_VERSION, self.terraform_version)] = Amount()
        return found


def find_contents(loaded: LoadedDocument) -> Contents:
    """Return the index data of a document.

    Raises:
        StateEncrypted, StateFormatUnsupported, StateTooComplex: see ``format4.parse``.
        NamesTooLongError: a name exceeds the index's limit.
    """
    with limited_reading(loaded.gzipped) as effort:
        document = loaded.parsed
        if sum(len(resource.instances) for resource in document.resources or ()) > MOST_RESOURCES:
            raise StateTooComplex
        secrets = masking.secrets_of(effort, document) if _marks_anything(document) else None
        resources = [_found(*one, secrets, effort) for one in document.instances()]
        remote_states = list(find_remote_states(document, secrets, effort))
        version = _version(document.terraform_version)
        return Contents(resources, version, remote_states, _failing_checks(document, effort))


def _version(text: str) -> str:
    """Return the version of Terraform that wrote the document, or "" if it is invalid."""
    return text if len(text) <= _MOST_OF_VERSION and "\0" not in text else ""


def _failing_checks(document: Document, effort: Effort) -> list[str]:
    """Return the failing checks, or none if the results have an unknown format."""
    with contextlib.suppress(StateFormatUnsupported, StateTooComplex):
        return check_results.failing_checks(document, effort)
    return []


def _marks_anything(document: Document) -> bool:
    return any(output.sensitive for output in (document.outputs or {}).values()) or any(
        instance.sensitive_attributes != format4.NO_PATHS for _, instance in document.instances()
    )


def _found(
    resource: Resource, instance: Instance, secrets: Secrets | None, effort: Effort
) -> Found:
    effort.spend(1)
    attributes, identity = _identifying(resource, instance, secrets, effort)
    found = Found(
        address=resource.address(instance),
        deposed=instance.deposed or "",
        module=resource.module,
        mode=resource.mode,
        type=resource.type,
        name=resource.name,
        index_key=instance.index_key,
        provider=format4.provider_address(resource.provider_of(instance)),
        cluster_object=cluster_object(resource, attributes),
        digests=frozenset(map(digest, (*_texts(attributes), *identity))),
    )
    # The address contains the module, the type, the name and the key.
    lengths = {found.address: MOST_BYTES, found.deposed: MOST_BYTES, found.provider: MOST_BYTES,
               found.mode: MOST_BYTES_OF_MODE}  # fmt: skip
    texts = (*lengths, found.type, found.name, str(found.index_key))
    if any("\0" in text for text in texts) or any(
        len(text.encode()) > most for text, most in lengths.items()
    ):
        raise NamesTooLongError
    return found


def _identifying(
    resource: Resource, instance: Instance, secrets: Secrets | None, effort: Effort
) -> tuple[dict[str, Any], list[Any]]:
    """Return the attributes and the identity of an instance, without hidden values."""
    if resource.type.partition("_")[0] in _SECRET_PROVIDERS:
        return {}, []
    attributes = format4.decode(instance.values, effort)
    identity = format4.decode(instance.identity, effort)
    shown: Any = {"attributes": attributes, "identity": identity}
    if secrets is not None:
        marks = sensitive_paths.marks_of(instance, attributes, effort)
        (shown,) = masking.masked(secrets, (shown, {"attributes": marks}))
    if not isinstance(shown, dict):
        return {}, []
    # An identity with hidden parts would identify another object.
    is_whole = identity and isinstance(identity, dict) and shown["identity"] is identity
    is_object = isinstance(shown["attributes"], dict)
    return shown["attributes"] if is_object else {}, [identity] if is_whole else []


def _texts(attributes: dict[str, Any]) -> Iterator[str]:
    for name in _IDENTIFYING:
        yield from _text(attributes.get(name))
    metadata = metadata_of(attributes)
    yield from _text(metadata.get("uid"))
    named, namespace = metadata.get("name"), metadata.get("namespace")
    if named and isinstance(named, str) and isinstance(namespace, str | None):
        yield f"{namespace}/{named}" if namespace else named


def _text(value: Any) -> Iterator[str]:
    """Yield a text or number that can identify an object, unless it is hidden."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        yield number_text(value)
