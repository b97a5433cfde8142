"""Models of users, keys, tokens and the audit log."""

from apikeys.models.audit_log import AuditArchive, AuditEvent
from apikeys.models.credentials import AccessToken, ApiKey
from apikeys.models.federation import Issuer, TrustPolicy, UsedAssertion
from apikeys.models.grant_holder import MAX_BOUND_IDS, JsonArrayLength
from apikeys.models.users import User

__all__ = [
    "MAX_BOUND_IDS",
    "AccessToken",
    "ApiKey",
    "AuditArchive",
    "AuditEvent",
    "Issuer",
    "JsonArrayLength",
    "TrustPolicy",
    "UsedAssertion",
    "User",
]
