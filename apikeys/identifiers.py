"""Identifiers of keys, tokens, issuers and policies, with a prefix for each kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from django.utils.http import int_to_base36

from infra_service.lib.api.identifiers import uuid7_of
from infra_service.lib.uuids import uuid7

if TYPE_CHECKING:
    import datetime as dt

_LENGTH: Final = 25  # 36 ** 25 > 2 ** 128. Identifiers of the same length sort by their time.

_CREDENTIAL: Final = re.compile(rf"(key|tok|fed)-[0-9a-z]{{{_LENGTH}}}")


def is_credential_id(text: str) -> bool:
    """Return whether a text has the form of an id, unlike the name ``key-of-ci``."""
    return _CREDENTIAL.fullmatch(text) is not None


def api_key_id(moment: dt.datetime | None = None) -> str:
    """Return a new API key id, ``^key-[0-9a-z]+$``; later ids sort after earlier ones."""
    return f"key-{_base36_uuid7(moment)}"


def access_token_id(moment: dt.datetime | None = None) -> str:
    """Return a new access token id, ``^tok-[0-9a-z]+$``; later ids sort after earlier ones."""
    return f"tok-{_base36_uuid7(moment)}"


def issuer_id() -> str:
    """Return a new issuer id, ``^iss-[0-9a-z]+$``. Service tokens start with ``iss_``."""
    return f"iss-{_base36_uuid7(None)}"


def trust_policy_id() -> str:
    """Return a new trust policy id, ``^fed-[0-9a-z]+$``."""
    return f"fed-{_base36_uuid7(None)}"


def _base36_uuid7(moment: dt.datetime | None) -> str:
    number = (uuid7() if moment is None else uuid7_of(moment)).int
    return int_to_base36(number).zfill(_LENGTH)
