"""Reasons why a key or token does not work.

Authentication, the API, the admin and the commands use the same annotation, ``unusable_reason``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, CharField, Q, TextChoices, Value, When

from apikeys.idle_owners import signed_on_last

if TYPE_CHECKING:
    from collections.abc import Mapping


class UnusableReason(TextChoices):
    """The reason why the service rejects a key or token, in order of precedence."""

    REVOKED = "REVOKED", "Revoked"
    API_KEY_REVOKED = "API_KEY_REVOKED", "Key revoked"
    TRUST_POLICY_DISABLED = "TRUST_POLICY_DISABLED", "Policy disabled"
    ISSUER_DISABLED = "ISSUER_DISABLED", "Issuer disabled"
    OWNER_INACTIVE = "OWNER_INACTIVE", "Inactive owner"
    OWNER_IDLE = "OWNER_IDLE", "Idle owner"
    EXPIRED = "EXPIRED", "Expired"
    API_KEY_EXPIRED = "API_KEY_EXPIRED", "Key expired"
    TRUST_POLICY_EXPIRED = "TRUST_POLICY_EXPIRED", "Policy expired"


#: Columns with the time of a revocation, of the credential itself and of its origin.
KEY_REVOCATIONS: Final = {"revoked_at": UnusableReason.REVOKED}
TOKEN_REVOCATIONS: Final = {
    **KEY_REVOCATIONS,
    "api_key__revoked_at": UnusableReason.API_KEY_REVOKED,
    "trust_policy__disabled_at": UnusableReason.TRUST_POLICY_DISABLED,
    "trust_policy__issuer__disabled_at": UnusableReason.ISSUER_DISABLED,
}
#: Columns with an expiry, of the credential itself and of its origin.
KEY_EXPIRIES: Final = {"expires_at": UnusableReason.EXPIRED}
TOKEN_EXPIRIES: Final = {
    **KEY_EXPIRIES,
    "api_key__expires_at": UnusableReason.API_KEY_EXPIRED,
    "trust_policy__expires_at": UnusableReason.TRUST_POLICY_EXPIRED,
}


def status_word(reason: str | None) -> str:
    """Return the status text of a credential with this ``unusable_reason``."""
    return "Active" if reason is None else str(UnusableReason(reason).label)


def unusable_reason(
    revocations: Mapping[str, UnusableReason],
    expiries: Mapping[str, UnusableReason],
    *,
    now: Any,
    idle_before: Any,
) -> Case:
    """Return an SQL expression for the reason, which is null while the credential works.

    ``now`` and ``idle_before`` are values or parameters of a compiled statement. If ``idle_before``
    is None, owners are never idle.
    """
    conditions: list[tuple[Any, UnusableReason]] = [
        *((Q((f"{column}__isnull", False)), reason) for column, reason in revocations.items()),
        (Q(created_by__is_active=False), UnusableReason.OWNER_INACTIVE),
    ]
    if idle_before is not None:
        conditions.append((signed_on_last(idle_before, "created_by__"), UnusableReason.OWNER_IDLE))
    conditions += ((Q((f"{column}__lte", now)), reason) for column, reason in expiries.items())
    return Case(
        *(When(condition, then=Value(reason.value)) for condition, reason in conditions),
        output_field=CharField(null=True),
    )
