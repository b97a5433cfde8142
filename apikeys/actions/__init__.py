"""Actions on keys, tokens, issuers, policies and users: functions that each use one transaction.

``actor.grant`` limits every grant in the API, the admin and the commands.
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
from apikeys.actions.exchange import exchange_assertion, prove, recording_refusals
from apikeys.actions.first_operator import create_first_operator
from apikeys.actions.issuers import change_issuer, create_issuer, disable_issuer
from apikeys.actions.trust_policies import (
    change_trust_policy,
    create_trust_policy,
    disable_trust_policy,
    try_trust_policy,
)
from apikeys.actions.users import (
    check_superuser_remains,
    deactivate_user,
    revoke_credentials,
)

__all__ = [
    "MAX_GRACE_PERIOD",
    "MAX_MINTED_LIFETIME",
    "change_api_key",
    "change_issuer",
    "change_trust_policy",
    "check_superuser_remains",
    "create_api_key",
    "create_first_operator",
    "create_issuer",
    "create_trust_policy",
    "deactivate_user",
    "disable_issuer",
    "disable_trust_policy",
    "exchange_assertion",
    "issue_access_token",
    "mint_access_token",
    "prove",
    "recording_refusals",
    "revoke_access_token",
    "revoke_api_key",
    "revoke_credentials",
    "rotate_api_key",
    "try_trust_policy",
]
