"""The admin of users, groups, keys, tokens and the audit log."""

from apikeys.admin.audit_log import AuditEventAdmin
from apikeys.admin.credentials import AccessTokenAdmin, ApiKeyAdmin
from apikeys.admin.federation import IssuerAdmin, TrustPolicyAdmin
from apikeys.admin.groups import GroupAdmin
from apikeys.admin.users import UserAdmin

__all__ = [
    "AccessTokenAdmin",
    "ApiKeyAdmin",
    "AuditEventAdmin",
    "GroupAdmin",
    "IssuerAdmin",
    "TrustPolicyAdmin",
    "UserAdmin",
]
