"""Terraform's and OpenTofu's state format 4, parsed lazily.

The format is defined in Terraform's ``internal/states/statefile/version4.go``. Attributes and
output values remain slices of the document's bytes (``msgspec.Raw``) until they are needed. A
document of 50 MB with 20,000 resources therefore needs little more memory than its bytes.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Raw

from states.document.address_text import index_text, printable
from states.errors import StateEncrypted, StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.document.work_limit import Effort

T = TypeVar("T")

FORMAT: Final = 4
_NULL: Final = Raw(b"null")
NO_PATHS: Final = Raw(b"[]")


#: The length of names is limited, because each address repeats them, and a response could be huge.
Name = Annotated[str, msgspec.Meta(max_length=10_000)]

# Terraform reads documents with Go's encoding/json, which treats a null member as absent. For some
# members, a property returns the value without null.


class Output(msgspec.Struct, frozen=True, gc=False):
    """An output of the root module. ``type`` is cty's JSON description of a type.

    ``deprecated`` is OpenTofu's deprecation message for callers of the module.
    """

    value: Raw = _NULL
    type: Raw = _NULL
    sensitive_as_written: bool | None = msgspec.field(default=None, name="sensitive")
    deprecated: Raw = _NULL

    @property
    def sensitive(self) -> bool:
        """Return whether the output is marked as sensitive."""
        return bool(self.sensitive_as_written)


class Instance(msgspec.Struct, frozen=True, gc=False):
    """An object of a resource: the current object for a key, or a deposed object.

    States from before Terraform 0.12 have ``attributes_flat`` instead of ``attributes``. Terraform
    1.12 and later write ``identity``, the provider's identity of the object. Only OpenTofu writes
    ``provider`` and ``skip_destroy``, and only Terraform 0.12 writes ``depends_on``.
    """

    key_as_written: float | Name | None = msgspec.field(default=None, name="index_key")
    status: str | None = None
    deposed: Name | None = None
    provider: Name | None = None
    schema_version: int | None = None
    attributes: Raw = _NULL
    attributes_flat: Raw = _NULL
    sensitive_attributes: Raw = NO_PATHS
    identity_schema_version: int | None = None
    identity: Raw = _NULL
    private: Raw = _NULL
    dependencies: Raw = _NULL
    depends_on: Raw = _NULL
    create_before_destroy: bool | None = None
    skip_destroy: bool | None = None

    @property
    def index_key(self) -> int | str | None:
        """Return the key: a number for ``count``, a text for ``for_each``, otherwise None.

        Like Terraform, read any number as a float64, and cut off its fraction.
        """
        key = self.key_as_written
        if key is None or isinstance(key, str):
            return key
        number = int(key)
        return number if -_NUMBERS <= number < _NUMBERS else -_NUMBERS

    @property
    def values(self) -> Raw:
        """Return the attributes from ``attributes`` or ``attributes_flat``."""
        return self.attributes_flat if self.attributes == _NULL else self.attributes


#: The limit of int64. On most machines, Go converts larger numbers to the minimum.
_NUMBERS: Final = 2**63
_EMPTY: Final = Instance()


class Resource(msgspec.Struct, frozen=True, gc=False):
    """A resource block of the configuration: ``mode`` is ``managed`` or ``data``.

    Only Terraform 0.12 uses ``each``.
    """

    mode: Name
    type_as_written: Name | None = msgspec.field(name="type")
    name_as_written: Name | None = msgspec.field(name="name")
    instances_as_written: list[Instance | None] | None = msgspec.field(
        default=None, name="instances"
    )
    module_as_written: Name | None = msgspec.field(default=None, name="module")
    each: str | None = None
    provider: Name | None = None

    @property
    def type(self) -> str:
        """Return the type of the resource."""
        return self.type_as_written or ""

    @property
    def name(self) -> str:
        """Return the name of the resource in its module."""
        return self.name_as_written or ""

    @property
    def module(self) -> str:
        """Return the address of the module in Terraform's notation.

        It is empty for the root module.
        """
        return printable(self.module_as_written or "")

    @property
    def instances(self) -> list[Instance]:
        """Return the objects of the resource. As in Terraform, null counts as an empty object."""
        return [instance or _EMPTY for instance in self.instances_as_written or ()]

    @property
    def block(self) -> str:
        """Return the address of the block, which is the prefix of its instances' addresses."""
        data = "data." if self.mode == "data" else ""
        path = f"{self.module}." if self.module else ""
        return f"{path}{data}{printable(self.type)}.{printable(self.name)}"

    def address(self, instance: Instance) -> str:
        """Return the address of an instance in Terraform's notation, without ``deposed``."""
        return f"{self.block}{index_text(instance.index_key)}"

    def provider_of(self, instance: Instance) -> str:
        """Return an instance's provider configuration. OpenTofu can write it in each instance."""
        return instance.provider or self.provider or ""


_PROVIDER: Final = ('provider["', '"]')


def provider_address(configuration: str) -> str:
    """Return the address of a provider from a configuration such as ``provider["…/aws"].west``.

    Other texts are returned unchanged.
    """
    opening, closing = _PROVIDER
    if opening not in configuration:
        return configuration
    return configuration.partition(opening)[2].partition(closing)[0]


class Document(msgspec.Struct, frozen=True):
    """A state document with format 4."""

    terraform_version_as_written: str | None = msgspec.field(default=None, name="terraform_version")
    outputs: dict[str, Output] | None = None
    resources: list[Resource] | None = None
    check_results: Raw = _NULL

    @property
    def terraform_version(self) -> str:
        """Return the version of Terraform or OpenTofu that wrote the document."""
        return self.terraform_version_as_written or ""

    def instances(self) -> Iterator[tuple[Resource, Instance]]:
        """Yield each instance with its resource, in document order."""
        for resource in self.resources or ():
            for instance in resource.instances:
                yield resource, instance


class _Kind(msgspec.Struct):
    version: Raw = _NULL
    encrypted_data: Raw = _NULL


_kind: Final = msgspec.json.Decoder(_Kind)
_document: Final = msgspec.json.Decoder(Document)


def parse(document: bytes, effort: Effort) -> Document:
    """Parse a document.

    Raises:
        StateEncrypted: OpenTofu encrypted the document on the client.
        StateFormatUnsupported: the document has another format version, or is not a state.
        StateTooComplex: the document has too many instances for its size.
    """
    version = refuse_encrypted(document)
    if version != str(FORMAT):
        raise StateFormatUnsupported(f"its format version is {version}", version)
    effort.admit_document(document)
    return decode_with(_document, document)


def refuse_encrypted(document: bytes) -> str:
    """Return the document's format version, unless OpenTofu encrypted it.

    Raises:
        StateEncrypted: OpenTofu encrypted the document.
        StateFormatUnsupported: the document is not a JSON object.
    """
    kind = decode_with(_kind, document)
    if kind.encrypted_data != _NULL:
        raise StateEncrypted
    return bytes(kind.version)[:20].decode(errors="replace")


# Decimals keep all digits of a number. A float has 17 digits, but Terraform writes up to 154.
_value: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(float_hook=decimal.Decimal)


def decode(raw: Raw, effort: Effort) -> Any:
    """Decode a value of the document: dict, list, str, int, Decimal, bool or None.

    Raises:
        StateFormatUnsupported: the value is nested too deeply, or contains invalid text or a number
            with an exponent of 19 digits.
        StateTooComplex: the value would need too much memory.
    """
    effort.admit(raw)
    return decode_with(_value, raw)


def decode_with(decoder: msgspec.json.Decoder[T], raw: Raw | bytes) -> T:
    """Decode a value that must have the decoder's type.

    Raises:
        StateFormatUnsupported: the value has another type, or is invalid.
    """
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StateFormatUnsupported(str(error)) from error
    except decimal.InvalidOperation as error:
        raise StateFormatUnsupported("a number is out of range") from error


_addresses: Final = msgspec.json.Decoder(list[str] | None)


def dependencies(raw: Raw, effort: Effort) -> list[str]:
    """Return the addresses of the resources that an instance depends on.

    Raises:
        StateFormatUnsupported: the value is not a list of addresses.
        StateTooComplex: the list would need too much memory.
    """
    effort.admit(raw)
    return decode_with(_addresses, raw) or []
