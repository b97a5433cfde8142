"""Descriptions of documents that are not states, for error messages about mistaken pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from states.document.format4 import decode_with

if TYPE_CHECKING:
    from collections.abc import Mapping


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
# The members of a struct, because the decoder skips all other members of a document.
_members: Final = msgspec.json.Decoder(
    msgspec.defstruct("Members", [(name, Raw | UnsetType, UNSET) for name in _KINDS], gc=False)
)


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
