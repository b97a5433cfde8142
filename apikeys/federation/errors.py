"""Errors for authors of issuers and trust policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import APIException, NotFound, PermissionDenied

from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence


class IssuerNotFound(NotFound):
    meaning = "The issuer does not exist."
    default_code = "ISSUER_NOT_FOUND"
    default_detail = "The issuer does not exist."
    advice = "GET /v1/issuers lists the issuers and their ids."


class IssuerDisabled(APIException):
    meaning = "A disabled issuer cannot be changed."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "ISSUER_DISABLED"
    default_detail = "The issuer is disabled permanently. Register another issuer."


class IssuerShared(PermissionDenied):
    meaning = (
        "The issuer has policies of other owners, or policies that exceed the caller's "
        "grant. A change to the issuer would affect them."
    )
    default_code = "ISSUER_SHARED"
    default_detail = (
        "The issuer has policies of other owners, or policies with permissions that your token "
        "lacks. Ask an operator to change the issuer."
    )


class InvalidIssuer(InvalidParameter):
    """Invalid fields of an issuer, or a URL that belongs to another platform."""


class FieldFixed(InvalidParameter):
    """A change to a field that is fixed after creation."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "Cannot be changed. Create a new object instead.", "FIXED")


class IssuerUnusable(InvalidParameter):
    """An unknown or disabled issuer of a policy."""

    def __init__(self) -> None:
        super().__init__(
            "issuer_id", "The issuer does not exist, or is disabled.", "UNKNOWN_ISSUER"
        )


class TrustPolicyNotFound(NotFound):
    meaning = (
        "The policy does not exist, belongs to another user, or is outside the caller's binding."
    )
    default_code = "TRUST_POLICY_NOT_FOUND"
    default_detail = "The trust policy does not exist, or belongs to another user."
    advice = "GET /v1/trust-policies lists your trust policies and their ids."


class TrustPolicyDisabled(APIException):
    meaning = "A disabled trust policy cannot be changed."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TRUST_POLICY_DISABLED"
    default_detail = "The trust policy is disabled permanently. Create another policy."


class TrustPolicyTooWide(APIException):
    """Conditions that are too broad; ``faults`` names the claims that the conditions do not pin."""

    meaning = (
        "The conditions are too broad: they pin no permanent identifier, or a policy "
        "with write scopes does not pin the origin of the code."
    )
    status_code = 400
    default_code = "TRUST_POLICY_TOO_WIDE"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(" ".join(faults))
        self.field_violations = [
            {"field": "conditions", "description": fault, "reason": "NOT_PINNED"}
            for fault in faults
        ]
