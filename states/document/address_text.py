"""The text of addresses in Terraform's notation (``internal/addrs/instance_key.go``)."""

from __future__ import annotations

from typing import Final


def index_text(key: int | str | None) -> str:
    """Return the key at the end of an instance's address, or an empty string if it has none."""
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{quoted(key)}]"


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """Return an HCL string literal as in Terraform's addresses."""
    inner = "".join(_ESCAPES.get(character, character) for character in text)
    return '"' + printable(inner.replace("${", "$${").replace("%{", "%%{")) + '"'


def printable(text: str) -> str:
    """Return the text with an escape for each unprintable character, like Terraform.

    In ``toHCLQuotedString`` in Terraform's ``internal/addrs/instance_key.go``, letters, marks,
    numbers, punctuation, symbols and the space are printable. The results differ for characters in
    Terraform's version of Unicode that are missing in this Python's version.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in text)


#: The first code point that requires an escape with eight digits.
_LONG: Final = 0x10000


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < _LONG else f"\\U{code:08x}"
