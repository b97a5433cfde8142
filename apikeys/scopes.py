"""Scopes: the permissions of a token. The names are the wire format."""

from collections.abc import Collection
from typing import Final

from django.db.models import TextChoices


class Scope(TextChoices):
    """Scopes with their descriptions. The reference is docs/reference/scopes.md."""

    APIKEY_READ = "apikey:read", "List and read the caller's own keys and tokens"
    APIKEY_WRITE = (
        "apikey:write",
        "Create, change, rotate and revoke the caller's own keys and tokens",
    )
    STATE_READ = "state:read", "Read states, their history and their locks"
    STATE_WRITE = (
        "state:write",
        "Push, lock and unlock states; create their components and environments",
    )
    STATE_ADMIN = (
        "state:admin",
        "Freeze, force-unlock, delete and force-push states; rename and move catalogue entries",
    )
    STATE_SECRETS = "state:secrets", "Read the sensitive values of states"
    STATE_OUTPUTS = "state:outputs", "Read the outputs of states, except sensitive values"
    CLUSTER_READ = "cluster:read", "List clusters and their workloads"
    CLUSTER_WRITE = "cluster:write", "Register, change and delete clusters; report workloads"
    CLUSTER_REPORT = "cluster:report", "Report workloads only (for agents)"
    AUDIT_READ = "audit:read", "Read the audit log"
    FEDERATION_WRITE = (
        "federation:write",
        "Manage issuers and trust policies of CI platforms",
    )
    WEBHOOK_WRITE = (
        "webhook:write",
        "Manage webhooks for events within the caller's scopes",
    )


#: Scopes that another scope includes.
_INCLUDED: Final[dict[str, frozenset[str]]] = {
    Scope.CLUSTER_WRITE: frozenset({Scope.CLUSTER_REPORT.value})
}

#: Scopes whose requests refuse a replaced secret. A token that it mints cannot have them either.
MANAGING: Final = frozenset({Scope.APIKEY_WRITE, Scope.FEDERATION_WRITE, Scope.WEBHOOK_WRITE})


def with_included(scopes: Collection[str]) -> frozenset[str]:
    """Return the scopes and their included scopes."""
    return frozenset(scopes).union(*(_INCLUDED.get(scope, ()) for scope in scopes))
