"""Terraform's and OpenTofu's state format 4, read without building what is not asked for.

The form is Terraform's ``internal/states/statefile/version4.go``. Attributes, output values and
the like stay slices of the document's own bytes (``msgspec.Raw``) until somebody looks at one, so
that a document of 50 MB with 20,000 resources costs little more than its bytes.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Raw

from states.errors import StateEncrypted, StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.effort import Effort

T = TypeVar("T")

FORMAT: Final = 4
_NULL: Final = Raw(b"null")
NO_PATHS: Final = Raw(b"[]")


#: Names stand in each address again, so that a long one would make an answer many times as large.
Name = Annotated[str, msgspec.Meta(max_length=10_000)]


class Output(msgspec.Struct, frozen=True, gc=False):
    """An output of the root module; ``type`` is cty's JSON description of a type."""

    value: Raw = _NULL
    type: Raw = _NULL
    sensitive: bool = False


class Instance(msgspec.Struct, frozen=True, gc=False):
    """One object of a resource: the current one of a key, or a deposed one.

    ``index_key`` is a number with ``count``, a text with ``for_each``. ``attributes_flat`` is what
    a state that began before Terraform 0.12 may still have instead of ``attributes``. ``identity``
    is what the provider knows the object by, from Terraform 1.12 on.
    """

    index_key: int | Name | None = None
    status: str | None = None
    deposed: str | None = None
    schema_version: int = 0
    attributes: Raw = _NULL
    attributes_flat: Raw = _NULL
    sensitive_attributes: Raw = NO_PATHS
    dependencies: Raw = NO_PATHS
    create_before_destroy: bool = False
    identity: Raw = _NULL

    @property
    def values(self) -> Raw:
        """The attributes in whichever form there is."""
        return self.attributes_flat if self.attributes == _NULL else self.attributes


class Resource(msgspec.Struct, frozen=True, gc=False):
    """A resource block of the configuration: ``mode`` is ``managed`` or ``data``."""

    mode: Name
    type: Name
    name: Name
    instances: list[Instance]
    module: Name = ""
    provider: Name = ""

    @property
    def block(self) -> str:
        """The address of the block, which its instances have in common."""
        data = "data." if self.mode == "data" else ""
        path = f"{self.module}." if self.module else ""
        return f"{path}{data}{self.type}.{self.name}"

    def address(self, instance: Instance) -> str:
        """Return the instance's address as Terraform prints and reads it, without ``deposed``."""
        return f"{self.block}{index_text(instance.index_key)}"


class Document(msgspec.Struct, frozen=True):
    """A state document of format 4."""

    terraform_version: str = ""
    outputs: dict[str, Output] | None = None
    resources: list[Resource] | None = None

    def instances(self) -> Iterator[tuple[Resource, Instance]]:
        """Yield each instance, in the document's order."""
        for resource in self.resources or ():
            for instance in resource.instances:
                yield resource, instance


class _Kind(msgspec.Struct):
    version: Raw = _NULL
    encrypted_data: Raw = _NULL


_kind: Final = msgspec.json.Decoder(_Kind)
_document: Final = msgspec.json.Decoder(Document)


def parse(document: bytes, effort: Effort) -> Document:
    """Read a document.

    Raises:
        StateEncrypted: OpenTofu encrypted it on the client; only its owner can read it.
        StateFormatUnsupported: another format version, or what is no state at all.
        StateTooComplex: it has too many instances for its size.
    """
    version = refuse_encrypted(document)
    if version != str(FORMAT):
        raise StateFormatUnsupported(f"its format version is {version}", version)
    effort.admit_document(document)
    return decode_with(_document, document)


def refuse_encrypted(document: bytes) -> str:
    """Return the document's format version as it is written, unless OpenTofu encrypted it.

    Raises:
        StateEncrypted: it did.
        StateFormatUnsupported: what is no state at all.
    """
    kind = decode_with(_kind, document)
    if kind.encrypted_data != _NULL:
        raise StateEncrypted
    return bytes(kind.version)[:20].decode(errors="replace")


# A number keeps every digit that was written: floats have 17, Terraform's have up to 154.
_value: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(float_hook=decimal.Decimal)


def decode(raw: Raw, effort: Effort) -> Any:
    """Return a value of the document: dict, list, str, int, Decimal, bool or None.

    Raises:
        StateFormatUnsupported: nested too deeply, text that is no text, or a number with an
            exponent of 19 digits.
        StateTooComplex: it would take too much memory.
    """
    effort.admit(raw)
    return decode_with(_value, raw)


def decode_with(decoder: msgspec.json.Decoder[T], raw: Raw | bytes) -> T:
    """Return a value that must have the decoder's type.

    Raises:
        StateFormatUnsupported: it does not.
    """
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StateFormatUnsupported(str(error)) from error
    except decimal.InvalidOperation as error:
        raise StateFormatUnsupported("a number in it is out of range") from error


_addresses: Final = msgspec.json.Decoder(list[str])


def dependencies(instance: Instance, effort: Effort) -> list[str]:
    """Return the addresses of the resources that the instance depends on."""
    effort.admit(instance.dependencies)
    return decode_with(_addresses, instance.dependencies)


def index_text(key: int | str | None) -> str:
    """Return the end of an instance's address."""
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{quoted(key)}]"


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """Return an HCL string literal, as Terraform writes one in an address."""
    inner = "".join(_ESCAPES.get(character, character) for character in text)
    return '"' + inner.replace("${", "$${").replace("%{", "%%{") + '"'
