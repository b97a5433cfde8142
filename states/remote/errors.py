"""Errors of the remote backend. go-tfe recognizes some of them by their status or text."""

from __future__ import annotations

from rest_framework.exceptions import APIException, NotFound


class RouteNotFound(NotFound):
    meaning = (
        "The remote backend has no such route. The service stores states but does not run plans."
    )
    default_code = "ROUTE_NOT_FOUND"
    default_detail = (
        "The service only stores states; docs/reference/remote-backend.md lists its routes."
    )


class OrganizationNotFound(NotFound):
    meaning = "No application has this slug, or the application is outside the token's binding."
    default_code = "ORGANIZATION_NOT_FOUND"
    default_detail = (
        "The organization does not exist. An organization is REMOTE_ORGANIZATION or the slug of "
        "an application."
    )


class WorkspaceNotFound(NotFound):
    meaning = "The workspace does not exist, or is outside the binding of the token."
    default_code = "WORKSPACE_NOT_FOUND"
    default_detail = (
        "The workspace does not exist, or is outside the binding of the token. Check its name and "
        "organization."
    )


class WorkspaceNotLocked(APIException):
    meaning = "The workspace is not locked."
    status_code = 409
    default_code = "WORKSPACE_NOT_LOCKED"
    default_detail = "The workspace is not locked."


class LockedByOther(APIException):
    meaning = "Another token, or a client of the http backend, locked the workspace."
    status_code = 409
    default_code = "WORKSPACE_LOCKED_BY_OTHER"

    def __init__(self, owner: str, door: str) -> None:
        super().__init__(
            f"The workspace is locked by User {owner} through the {door} backend. Wait until that "
            "client releases the lock, or run terraform force-unlock with a token that has "
            "state:write and state:admin."
        )


class LockMissing(APIException):
    meaning = "A new state version requires the workspace's lock, which the token has not acquired."
    status_code = 409
    rpc_status = "FAILED_PRECONDITION"
    default_code = "WORKSPACE_LOCK_REQUIRED"
    default_detail = (
        "The token has not locked the workspace. Run Terraform without -lock=false. If the lock "
        "was force-unlocked, run Terraform again."
    )


class StateVersionNotFound(NotFound):
    meaning = "The state version or output does not exist, or is hidden from the caller."
    default_code = "STATE_VERSION_NOT_FOUND"
    default_detail = "The state version or output does not exist, or is hidden from the caller."
