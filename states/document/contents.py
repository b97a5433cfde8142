"""The contents of a document, page by page: outputs, resources, and differences.

``hide`` hides sensitive values. ``start`` and ``size`` count outputs, resource instances or
changes.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rest_framework.exceptions import APIException

from states.document import (
    answers,
    changes,
    check_results,
    difference,
    format4,
    masking,
    resource_changes,
    sealing,
    sensitive_paths,
)
from states.document.concurrency import limited_reading
from states.document.hidden import encode
from states.document.work_limit import Effort

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgspec import Raw, Struct

    from states.document.answers import DifferenceSummary, MetadataChange
    from states.document.format4 import Document, Instance, Output, Resource
    from states.document.resource_changes import ResourceChange
    from states.document.secret_values import Secrets


class Page(NamedTuple):
    """A page of a list as JSON, and whether more items follow."""

    items: Raw
    more: bool


class ChangePage(NamedTuple):
    """A page of a difference. ``versions`` are the Terraform versions that wrote the two documents.

    The changes are lists in JSON.
    """

    summary: DifferenceSummary
    versions: tuple[str | None, str]
    metadata: list[MetadataChange]
    outputs: Any
    resources: Any
    check_results: Any
    more: bool


class LoadedDocument:
    """A gzipped document that is decompressed and parsed at most once for all readers."""

    def __init__(self, gzipped: bytes) -> None:
        self.gzipped = gzipped

    @cached_property
    def text(self) -> bytes:
        """Return the document as it was pushed."""
        return sealing.decompress(self.gzipped)

    @cached_property
    def parsed(self) -> Document:
        """Return the parsed document, for use within ``limited_reading``.

        Raises:
            StateEncrypted, StateFormatUnsupported, StateTooComplex: see ``format4.parse``.
        """
        return format4.parse(self.text, Effort(sealing.size_of(self.gzipped)))


def _parse(gzipped: bytes, effort: Effort) -> Document:
    return format4.parse(sealing.decompress(gzipped), effort)


def outputs(gzipped: bytes, *, start: int, size: int, hide: bool) -> Page:
    """Return a page of the outputs of a document, ordered by name.

    Raises:
        StateEncrypted, StateFormatUnsupported, StateTooComplex: see ``format4.parse``. The other
        functions also raise these errors.
    """
    with limited_reading(gzipped) as effort:
        document = _parse(gzipped, effort)
        found = sorted((document.outputs or {}).items())
        secrets = masking.secrets_of(effort, document) if hide else None
        items = [_output(*item, secrets, effort) for item in found[start : start + size]]
        return Page(encode(items), len(found) > start + size)


def resources(gzipped: bytes, *, start: int, size: int, hide: bool) -> Page:
    """Return a page of the resource instances of a document, in document order."""
    with limited_reading(gzipped) as effort:
        document = _parse(gzipped, effort)
        found = list(islice(document.instances(), start, start + size + 1))
        secrets = masking.secrets_of(effort, document) if hide else None
        items = [_resource(*item, secrets, effort) for item in found[:size]]
        return Page(encode(items), len(found) > size)


def outputs_document(gzipped: bytes, *, hide: bool) -> bytes:
    """Return the gzipped document without its resources, for clients that need only outputs.

    ``hide`` removes sensitive outputs, and outputs that contain a sensitive value.
    """
    with limited_reading(gzipped) as effort:
        written = sealing.decompress(gzipped)
        document = format4.parse(written, effort)
        found = document.outputs or {}
        if hide:
            secrets = masking.secrets_of(effort, document)
            found = {
                name: output
                for name, output in found.items()
                if masking.show_output(output, secrets, effort).hidden is None
            }
        head = sealing.read_head(written)
        body = {
            "version": format4.FORMAT,
            "terraform_version": document.terraform_version,
            "serial": head.serial or 0,
            "lineage": head.lineage or "",
            "outputs": {name: _as_written(output) for name, output in found.items()},
            "resources": [],
            "check_results": None,
        }
        return sealing.compress(bytes(encode(body)))


def _as_written(output: Output) -> dict[str, Any]:
    marked = {"sensitive": True} if output.sensitive else {}
    return {"value": output.value, "type": output.type, **marked}


class Overview(NamedTuple):
    """The first outputs of a document, and its first resource instances without attributes."""

    terraform_version: str
    outputs: Page
    resources: Page


def overview(gzipped: bytes, *, size: int, hide: bool) -> Overview:
    """Return an overview of a document, in a single pass."""
    with limited_reading(gzipped) as effort:
        document = _parse(gzipped, effort)
        found = sorted((document.outputs or {}).items())
        secrets = masking.secrets_of(effort, document) if hide and found else None
        outputs = [_output(*item, secrets, effort) for item in found[:size]]
        instances = list(islice(document.instances(), size + 1))
        resources = [_facts(*item) for item in instances[:size]]
        return Overview(
            document.terraform_version,
            Page(encode(outputs), len(found) > size),
            Page(encode(resources), len(instances) > size),
        )


class VersionChanges(NamedTuple):
    """The numbers of changes of a version, and the change of the Terraform version."""

    summary: DifferenceSummary
    metadata: list[MetadataChange]


def summaries(documents: Sequence[bytes | None]) -> list[VersionChanges | None]:
    """Return the changes of each document after the first, compared with the previous document.

    Empty bytes mean an absent document, and None an unreadable document. The result is None if one
    of the two documents is unreadable.
    """
    with limited_reading(*filter(None, documents)) as effort:
        parsed = [_parsed(gzipped, effort) for gzipped in documents]
        return [_summary(before, after, effort) for before, after in pairwise(parsed)]


def _parsed(gzipped: bytes | None, effort: Effort) -> Document | None:
    if gzipped is None:
        return None
    try:
        return _parse(gzipped, effort) if gzipped else difference.NO_DOCUMENT
    except APIException:
        return None


def _summary(
    before: Document | None, after: Document | None, effort: Effort
) -> VersionChanges | None:
    if before is None or after is None:
        return None
    try:
        found = difference.compare(before, after, hide=False, effort=effort)
    except APIException:
        return None
    return VersionChanges(found.summary, found.metadata)


def diff(before: bytes | None, after: bytes, *, start: int, size: int, hide: bool) -> ChangePage:
    """Return a page of the changes between two documents. ``before`` may be missing."""
    with limited_reading(before or b"", after) as effort:
        old = difference.NO_DOCUMENT if before is None else _parse(before, effort)
        new = _parse(after, effort)
        found = difference.compare(old, new, hide=hide, effort=effort)
        kinds: dict[str, tuple[Sequence[Any], Callable[..., Struct]]] = {
            "outputs": (found.outputs, changes.describe_output),
            "resources": (found.resources, changes.describe_resource),
            "check_results": (found.check_results, check_results.describe),
        }
        pages: dict[str, Any] = {}
        stop = start + size
        for name, (all_changes, describe) in kinds.items():
            page = all_changes[max(start, 0) : max(stop, 0)]
            # Each change is rendered before the next is decoded.
            pages[name] = encode([encode(describe(one, found.secrets, effort)) for one in page])
            start, stop = start - len(all_changes), stop - len(all_changes)
        return ChangePage(
            summary=found.summary,
            versions=(None if before is None else old.terraform_version, new.terraform_version),
            metadata=found.metadata,
            more=stop < 0,
            **pages,
        )


def changed_resources(before: LoadedDocument | None, after: LoadedDocument) -> list[ResourceChange]:
    """Return the changes of resources between two documents. ``before`` may be missing."""
    with limited_reading(before.gzipped if before else b"", after.gzipped) as effort:
        old = before.parsed if before else difference.NO_DOCUMENT
        found = difference.compare_resources(old, after.parsed, effort)
        return resource_changes.describe(found, effort)


def _output(name: str, output: Output, secrets: Secrets | None, effort: Effort) -> Raw:
    shown = masking.show_output(output, secrets, effort)
    return encode(
        answers.Output(
            name=name,
            value=shown.value,
            type=shown.type,
            sensitive=output.sensitive,
            hidden=shown.hidden and shown.hidden.describe(),
        )
    )


def _facts(resource: Resource, instance: Instance) -> dict[str, Any]:
    return {
        "address": resource.address(instance),
        "deposed": instance.deposed or None,
        "module": resource.module or None,
        "mode": resource.mode,
        "type": resource.type,
        "name": resource.name,
        "index_key": instance.index_key,
        "provider": resource.provider_of(instance),
        "status": instance.status or None,
    }


def _resource(
    resource: Resource, instance: Instance, secrets: Secrets | None, effort: Effort
) -> Raw:
    attributes: Any = instance.values
    cause = None
    if secrets is not None:
        values = format4.decode(instance.values, effort)
        marked = sensitive_paths.marks_of(instance, values, effort)
        (attributes,) = masking.masked(secrets, (values, marked))
        if attributes is not values:
            cause = masking.cause_of(attributes, marked=False)
    return encode(
        answers.Resource(
            **_facts(resource, instance),
            schema_version=instance.schema_version or 0,
            create_before_destroy=bool(instance.create_before_destroy),
            dependencies=format4.dependencies(instance.dependencies, effort),
            sensitive_attributes=[
                sensitive_paths.path_text(path) for path in sensitive_paths.paths(instance, effort)
            ],
            attributes=attributes,
            hidden=cause and cause.describe(),
        )
    )
