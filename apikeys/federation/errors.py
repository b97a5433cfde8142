"""Errors for authors of issuers and trust policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import APIException, NotFound, PermissionDenied

from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence


class IssuerNotFound(NotFound):
    meaning = "No such issuer."
    default_code = "ISSUER_NOT_FOUND"
    default_detail = "There is no such issuer."
    advice = "GET /v1/issuers lists those that there are, with their ids."


class IssuerDisabled(APIException):
    meaning = "A disabled issuer cannot be changed."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "ISSUER_DISABLED"
    default_detail = "The issuer is disabled, which is final."


class IssuerShared(PermissionDenied):
    meaning = (
        "Policies of the issuer may do what the caller may not, or are another's: whose signature "
        "is believed decides who gets what they give."
    )
    default_code = "ISSUER_SHARED"
    default_detail = (
        "The issuer has policies that are not yours, or that give more than your token holds, so "
        "it is not yours to change; an operator can."
    )


class InvalidIssuer(InvalidParameter):
    """Invalid fields of an issuer, or a URL that belongs to another platform."""


class FieldFixed(InvalidParameter):
    """A change of a field that is fixed after creation."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "Cannot be changed; make another one.", "FIXED")


class IssuerUnusable(InvalidParameter):
    """The issuer of a policy is unknown or disabled."""

    def __init__(self) -> None:
        super().__init__("issuer_id", "No such issuer, or it is disabled.", "UNKNOWN_ISSUER")


class TrustPolicyNotFound(NotFound):
    meaning = "No such trust policy, another's, or outside the caller's binding."
    default_code = "TRUST_POLICY_NOT_FOUND"
    default_detail = "You have no such trust policy."
    advice = "GET /v1/trust-policies lists those that you have, with their ids."


class TrustPolicyDisabled(APIException):
    meaning = "A disabled trust policy cannot be changed."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TRUST_POLICY_DISABLED"
    default_detail = "The trust policy is disabled, which is final."


class TrustPolicyTooWide(APIException):
    """Conditions that trust too many; ``faults`` name the claims that they do not pin."""

    meaning = (
        "The conditions would trust too many: they do not pin what identifies for good, or for "
        "what may write not from where the code comes."
    )
    status_code = 400
    default_code = "TRUST_POLICY_TOO_WIDE"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(" ".join(faults))
        self.field_violations = [
            {"field": "conditions", "description": fault, "reason": "NOT_PINNED"}
            for fault in faults
        ]
