"""Scopes: what a token may do. The names are the wire format."""

from django.db.models import TextChoices


class Scope(TextChoices):
    """Every scope, with what it allows. The reference is docs/reference/scopes.md."""

    APIKEY_READ = "apikey:read", "List and read the caller's own keys and tokens"
    APIKEY_WRITE = (
        "apikey:write",
        "Create, change, rotate and revoke the caller's own keys and tokens",
    )
    STATE_READ = "state:read", "Read states, their history and their locks"
    STATE_WRITE = "state:write", "Push, lock and unlock states; create what they belong to"
    STATE_ADMIN = (
        "state:admin",
        "Force-unlock, delete and force-push states; rename and move what they belong to",
    )
    STATE_SECRETS = "state:secrets", "See the values that a state marks sensitive"
    CLUSTER_READ = "cluster:read", "List clusters and their workloads"
    CLUSTER_WRITE = "cluster:write", "Register, change and delete clusters; report workloads"
    AUDIT_READ = "audit:read", "Read the audit trail"
