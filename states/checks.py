"""Start-up checks of the state backend's settings."""

from __future__ import annotations

import binascii
from typing import Any

from django.core.checks import CheckMessage, Error, register

from states import documents


@register
def encryption_keys_are_usable(**_kwargs: Any) -> list[CheckMessage]:
    """Report keys that could not encrypt."""
    try:
        if documents.keyring():
            return []
        problem = "there is none"
    except (ValueError, binascii.Error) as error:
        problem = str(error)
    return [
        Error(
            f"STATE_ENCRYPTION_KEYS: {problem}.",
            hint="Each key is 32 random bytes in base64: openssl rand -base64 32",
            id="states.E001",
        )
    ]
