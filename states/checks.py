"""Start-up checks of the settings for states."""

from __future__ import annotations

import binascii
from typing import Any

from django.conf import settings
from django.core.checks import WARNING, CheckMessage, Error, register

from infra_service.lib import encryption
from infra_service.lib.api import memory
from states import slugs, workspaces
from states.actions import history
from states.errors import StorageMisconfigured, StorageUnavailable
from states.keeping import storage


@register("settings")
def encryption_keys_are_usable(**_kwargs: Any) -> list[CheckMessage]:
    """Report missing or invalid encryption keys."""
    try:
        if encryption.keyring():
            return []
        problem = "no key is configured"
    except (ValueError, binascii.Error) as error:
        problem = str(error)
    return [
        Error(
            f"STATE_ENCRYPTION_KEYS: {problem}.",
            hint="Each key is 32 random bytes in base64: openssl rand -base64 32",
            id="states.E001",
        )
    ]


@register("settings")
def the_largest_document_fits_in_memory(**_kwargs: Any) -> list[CheckMessage]:
    """Report a memory budget that is too small for a restore of the largest document."""
    return memory.shortfall("STATE_MAX_BYTES", history.RESTORE_FACTOR, check_id="states.E002")


@register("settings")
def names_of_workspaces_are_readable(**_kwargs: Any) -> list[CheckMessage]:
    """Report invalid settings for the names of workspaces, environments and organizations."""
    problems = []
    try:
        workspaces.Form.read(settings.REMOTE_WORKSPACES)
    except ValueError as error:
        problems.append(f"REMOTE_WORKSPACES: {error}.")
    if not slugs.is_slug(settings.REMOTE_DEFAULT_ENVIRONMENT, "environment"):
        problems.append(f"REMOTE_DEFAULT_ENVIRONMENT: the name must be {slugs.DESCRIPTION}.")
    if not workspaces.is_name(settings.REMOTE_ORGANIZATION):
        problems.append(f"REMOTE_ORGANIZATION: the name must be {workspaces.DESCRIPTION}.")
    return [Error(problem, id="states.E004") for problem in problems]


@register("storage", deploy=True)
def object_store_is_reachable(**_kwargs: Any) -> list[CheckMessage]:
    """Report an object store that does not respond, lacks the bucket or rejects credentials."""
    if not storage.is_configured():
        return []
    try:
        storage.find_bucket()
    except StorageMisconfigured:
        return [
            Error(
                "STATE_STORAGE_URL: the bucket does not exist, or the store rejects the "
                "credentials.",
                hint="The log contains the reason, such as 404 or AccessDenied. The service does "
                "not create the bucket.",
                id="states.E003",
            )
        ]
    except StorageUnavailable:
        return [
            CheckMessage(
                WARNING,
                "STATE_STORAGE_URL: the store does not respond.",
                hint="Check the host and the port in the setting, the network, and the store.",
                id="states.W001",
            )
        ]
    return []
