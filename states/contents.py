"""What is in a document, page by page: outputs, resources, and the difference to another.

Sensitive values are hidden when ``hide`` says so. Sizes and positions count outputs, resource
instances or changes.
"""

from __future__ import annotations

import contextlib
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from states import changes, difference, documents, marks, masking, terraform
from states.errors import StateFormatUnsupported
from states.masking import Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from states.terraform import Document, Instance, Output, Resource

#: Bytes of documents. Two of 64 MiB in each of 32 threads would take gigabytes, however few bytes
#: they are when gzip'd; and threads do not make Python faster.
_LARGE: Final = 8 * 1024 * 1024
_turn: Final = threading.Lock()


class Page(NamedTuple):
    """A part of a list, as JSON, and whether there is more."""

    items: Raw
    more: bool


class DifferencePage(NamedTuple):
    """A part of a difference; ``versions`` are the Terraform versions that wrote the two."""

    summary: dict[str, dict[str, int]]
    versions: tuple[str | None, str]
    outputs: Raw
    resources: Raw
    more: bool


@contextlib.contextmanager
def _reading(*gzipped: bytes) -> Iterator[None]:
    """Read large documents one at a time.

    Raises:
        StateFormatUnsupported: also for a value that is nested too deeply to be looked at.
    """
    is_large = sum(map(documents.size_of, gzipped)) > _LARGE
    try:
        with _turn if is_large else contextlib.nullcontext():
            yield
    except RecursionError as error:
        raise StateFormatUnsupported("a value in it is nested too deeply") from error


def _parse(gzipped: bytes) -> Document:
    return terraform.parse(documents.decompress(gzipped))


def outputs(gzipped: bytes, *, start: int, size: int, hide: bool) -> Page:
    """Return outputs of a document, in the order of their names.

    Raises:
        StateEncrypted, StateFormatUnsupported: see there; so for the other functions.
    """
    with _reading(gzipped):
        document = _parse(gzipped)
        found = sorted((document.outputs or {}).items())
        secrets = _secrets(document, hide=hide)
        items = [_output(*item, secrets) for item in found[start : start + size]]
        return Page(terraform.encode(items), len(found) > start + size)


def resources(gzipped: bytes, *, start: int, size: int, hide: bool) -> Page:
    """Return resource instances of a document, in its order."""
    with _reading(gzipped):
        document = _parse(gzipped)
        found = list(islice(document.instances(), start, start + size + 1))
        secrets = _secrets(document, hide=hide)
        items = [_resource(*item, secrets) for item in found[:size]]
        return Page(terraform.encode(items), len(found) > size)


def diff(
    before: bytes | None, after: bytes, *, start: int, size: int, hide: bool
) -> DifferencePage:
    """Return changes between two documents, outputs first; None is nothing at all."""
    with _reading(before or b"", after):
        old = None if before is None else _parse(before)
        new = _parse(after)
        found = difference.compare(old, new, hide=hide)
        both = [*found.outputs, *found.resources]
        page = both[start : start + size]
        shown = [
            terraform.encode(
                [changes.describe(c, found.secrets) for c in page if c.of_output is of_output]
            )
            for of_output in (True, False)
        ]
        versions = (None if old is None else old.terraform_version, new.terraform_version)
        return DifferencePage(
            found.summary, versions, shown[0], shown[1], more=len(both) > start + size
        )


def _secrets(document: Document, *, hide: bool) -> Secrets | None:
    if not hide:
        return None
    secrets = Secrets()
    masking.collect(secrets, document)
    return secrets


def _output(name: str, output: Output, secrets: Secrets | None) -> dict[str, Any]:
    value, kind = masking.show_output(output, secrets)
    return {"name": name, "value": value, "type": kind, "sensitive": output.sensitive}


def _resource(
    address: str, resource: Resource, instance: Instance, secrets: Secrets | None
) -> dict[str, Any]:
    attributes: Any = instance.values
    if secrets is not None:
        values = terraform.decode(instance.values)
        marked = marks.marks_of(instance, values)
        attributes = masking.mask_of_instance(secrets, (values, marked)).apply(values, marked)
    return {
        "address": address,
        "deposed": instance.deposed or None,
        "module": resource.module or None,
        "mode": resource.mode,
        "type": resource.type,
        "name": resource.name,
        "index_key": instance.index_key,
        "provider": resource.provider,
        "status": instance.status or None,
        "schema_version": instance.schema_version,
        "create_before_destroy": instance.create_before_destroy,
        "dependencies": terraform.dependencies(instance),
        "sensitive_attributes": [marks.path_text(path) for path in marks.paths(instance)],
        "attributes": attributes,
    }
