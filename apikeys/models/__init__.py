"""Users, their keys and tokens, and the trail.

What the trail itself stands on imports the modules and not this package, which has users: to make
one is recorded.
"""

from apikeys.models.credentials import AccessToken, ApiKey, Credential
from apikeys.models.federation import Issuer, TrustPolicy, UsedAssertion
from apikeys.models.grant_holder import MAX_BOUND_IDS, GrantHolder, JsonArrayLength
from apikeys.models.trail import AuditArchive, AuditEvent
from apikeys.models.users import User

__all__ = [
    "MAX_BOUND_IDS",
    "AccessToken",
    "ApiKey",
    "AuditArchive",
    "AuditEvent",
    "Credential",
    "GrantHolder",
    "Issuer",
    "JsonArrayLength",
    "TrustPolicy",
    "UsedAssertion",
    "User",
]
