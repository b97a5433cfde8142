"""The admin of users, groups, keys, tokens and the audit trail."""

from apikeys.admin.credentials import AccessTokenAdmin, ApiKeyAdmin
from apikeys.admin.people import GroupAdmin, UserAdmin
from apikeys.admin.trail import AuditEventAdmin

__all__ = ["AccessTokenAdmin", "ApiKeyAdmin", "AuditEventAdmin", "GroupAdmin", "UserAdmin"]
