"""Descriptions of documents that are not states, for error messages about mistaken pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from states.document.format4 import decode_with

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Members(msgspec.Struct, frozen=True, gc=False):
    """The members that identify other kinds of documents."""

    planned_values: msgspec.Raw | msgspec.UnsetType = UNSET
    format_version: msgspec.Raw | msgspec.UnsetType = UNSET
    ID: msgspec.Raw | msgspec.UnsetType = UNSET
    error: msgspec.Raw | msgspec.UnsetType = UNSET
    errors: msgspec.Raw | msgspec.UnsetType = UNSET
    message: msgspec.Raw | msgspec.UnsetType = UNSET
    data: msgspec.Raw | msgspec.UnsetType = UNSET
    backend: msgspec.Raw | msgspec.UnsetType = UNSET
    resources: msgspec.Raw | msgspec.UnsetType = UNSET


_members: Final = msgspec.json.Decoder(_Members)
#: The content of ``.terraform/terraform.tfstate``.
BACKEND: Final = "Terraform's record of its backend (`.terraform/terraform.tfstate`)"
#: The kind of a document, by the first of these members that it contains.
_KINDS: Final[Mapping[str, str]] = {
    "planned_values": "a plan as JSON (`terraform show -json PLANFILE`)",
    "format_version": "the output of `terraform show -json`",
    "ID": "the information about a lock",
    "error": "the error response of a server",
    "errors": "the error response of a server",
    "message": "the error response of a server",
    "data": "the response of another API",
    "backend": BACKEND,
    "resources": "a state whose `version` is missing",
}


def describe(document: bytes) -> str:
    """Return the apparent kind of a document, as the object of "looks like".

    Raises:
        StateFormatUnsupported: the document is not a JSON object.
    """
    members = decode_with(_members, document)
    for name, kind in _KINDS.items():
        if getattr(members, name) is not UNSET:
            return kind
    # An object with members contains quotes.
    return "another JSON object, such as variables or outputs" if b'"' in document else "`{}`"
