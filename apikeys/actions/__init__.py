"""What is done with keys and tokens, over several models; keyword-only, whole or not at all.

What is handed on is checked in one place, ``actor.grant``, whoever asks: API, admin or command.
"""

from apikeys.actions.access_tokens import (
    MAX_MINTED_LIFETIME,
    issue_access_token,
    mint_access_token,
    revoke_access_token,
)
from apikeys.actions.api_keys import (
    MAX_GRACE_PERIOD,
    change_api_key,
    create_api_key,
    revoke_api_key,
    rotate_api_key,
)
from apikeys.actions.people import revoke_credentials

__all__ = [
    "MAX_GRACE_PERIOD",
    "MAX_MINTED_LIFETIME",
    "change_api_key",
    "create_api_key",
    "issue_access_token",
    "mint_access_token",
    "revoke_access_token",
    "revoke_api_key",
    "revoke_credentials",
    "rotate_api_key",
]
