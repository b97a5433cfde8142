"""Start-up checks of the state backend's settings."""

from __future__ import annotations

import binascii
from typing import Any

from django.core.checks import CheckMessage, Error, register

from infra_service.api import memory
from states.actions import history
from states.document import sealing


@register("settings")
def encryption_keys_are_usable(**_kwargs: Any) -> list[CheckMessage]:
    """Report keys that could not encrypt."""
    try:
        if sealing.keyring():
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


@register("settings")
def the_largest_document_fits_in_memory(**_kwargs: Any) -> list[CheckMessage]:
    """Report a budget in which no large document could be restored, which takes the most."""
    return memory.shortfall("STATE_MAX_BYTES", history.RESTORE_FACTOR, check_id="states.E002")
