"""LockInfo: the lock information that Terraform sends (``statemgr.LockInfo`` as JSON)."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from django.utils import timezone
from msgspec import Meta

from infra_service.lib.api.duplicate_members import duplicate_member
from infra_service.lib.api.identifiers import parse_uuid
from states.errors import InvalidLockInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from states.models import State

#: The maximum size. A LockInfo is usually a few hundred bytes; a client's ``Info`` can be long.
MAX_BYTES: Final = 64 * 1024

#: The backends through which a client can acquire a lock.
HTTP: Final = "http"
REMOTE: Final = "remote"

_VERSION: Final = re.compile(r"[0-9A-Za-z.+-]{1,40}", re.ASCII)
_LONGEST_REASON: Final = 1000
#: Maximum characters of each text that other clients see.
_MOST: Final = 200

# Go cannot decode a LockInfo with another form of time, and the client would not show the lock.
_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII
)


class LockInfo(msgspec.Struct, frozen=True):
    """The information about a lock, in Terraform's format."""

    ID: Annotated[
        str,
        Meta(
            description="The UUID that the client chose. Clients must send it with each push and "
            "with UNLOCK. For a frozen state, a sentence that names the operator and the reason."
        ),
    ]
    Operation: Annotated[
        str, Meta(description="The client's operation, such as `OperationTypeApply`.")
    ] = ""
    Info: Annotated[
        str,
        Meta(
            description="Text from the client, usually empty. In responses, the service can add "
            "the pipeline run and commit, or the reason of a freeze."
        ),
    ] = ""
    Who: Annotated[str, Meta(description="User and machine, such as `ada@laptop`.")] = ""
    Version: Annotated[
        str, Meta(description="The version of Terraform or OpenTofu, such as `1.11.4`.")
    ] = ""
    Created: Annotated[
        str,
        Meta(
            description="The time at which the client created the lock, with up to nine "
            "fractional digits. If it is absent or empty in a request, the service sets it.",
            extra_json_schema={"format": "date-time"},
        ),
    ] = ""
    Path: Annotated[
        str,
        Meta(
            description="The path of the state in other backends. Terraform's `http` backend "
            "sends an empty string."
        ),
    ] = ""

    @property
    def uuid(self) -> uuid.UUID:
        """Return the ID as a UUID, for comparisons."""
        return uuid.UUID(self.ID)

    def as_dict(self) -> dict[str, str]:
        """Return the seven fields as they are stored and sent."""
        return msgspec.structs.asdict(self)

    def printable(self) -> LockInfo:
        """Return a LockInfo with short texts that are safe to print, for other clients.

        ``ID`` and ``Created`` are unchanged.
        """
        texts = {
            name: terminal_text(text, _MOST)
            for name, text in self.as_dict().items()
            if name not in ("ID", "Created")
        }
        return msgspec.structs.replace(self, **texts)

    def described(self, taken_by: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return a description of the lock for the audit log.

        The ID is omitted, because it permits writes. ``who`` comes from the client. ``taken_by`` is
        the authenticated owner, if known. A ``taken_by`` of an earlier lock is ignored: a server of
        the previous release does not update it.
        """
        fields = {
            "who": self.Who,
            "operation": self.Operation,
            "created": self.Created,
        }
        if taken_by is None or taken_by["lock_id"] != self.ID:
            return fields
        by_remote = {"door": REMOTE} if taken_by.get("door") == REMOTE else {}
        return {
            **fields,
            "taken_by": {name: taken_by[name] for name in ("name", "token_id")} | by_remote,
        }

    @classmethod
    def of_caller(cls, who: str, *, reason: str, version: str, path: str) -> LockInfo:
        """Return a LockInfo with a new ID for a client that sends none.

        A version that does not look like a version of Terraform is omitted.
        """
        return cls(
            ID=str(uuid.uuid4()),
            Info=reason[:_LONGEST_REASON],
            Who=who,
            Version=version if _VERSION.fullmatch(version) else "",
            Created=timezone.now().isoformat().replace("+00:00", "Z"),
            Path=path,
        )

    @classmethod
    def of_freeze(cls, state: State) -> LockInfo:
        """Return a LockInfo that describes the freeze of a state.

        The ID is a sentence, because Terraform 1.11 prints only the ID of a lock that blocks it.
        """
        moment, until = state.frozen_at or timezone.now(), state.freeze_expected_until
        info = terminal_text(state.freeze_reason)
        if until is not None:
            info += f" (expected until {until:%Y-%m-%d %H:%M} UTC)"
        return cls(
            ID=f"frozen by {state.frozen_by} since {moment:%Y-%m-%d %H:%M} UTC: {info}",
            Operation="freeze",
            Info=info,
            Who=state.frozen_by,
            Created=moment.isoformat().replace("+00:00", "Z"),
        )

    @classmethod
    def parse(cls, body: bytes | bytearray) -> LockInfo:
        """Parse the body of a LOCK or UNLOCK.

        Raises:
            InvalidLockInfo: the body is not a JSON object of unique strings without NUL, the ID is
                not a UUID, or the time is not in the form of RFC 3339.
        """
        try:
            written = msgspec.json.decode(body, type=_Written)
            duplicate = duplicate_member(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidLockInfo(f"The body is not LockInfo: {error}") from error
        if duplicate is not None:
            raise InvalidLockInfo(f"LockInfo has the member {duplicate[:64]!a} more than once.")
        info = cls(**{name: text or "" for name, text in msgspec.structs.asdict(written).items()})
        if parse_uuid(info.ID) is None:
            raise InvalidLockInfo("The ID of a lock must be a UUID.")
        if any("\0" in value for value in info.as_dict().values()):
            raise InvalidLockInfo("LockInfo contains a NUL character.")
        if not info.Created:
            now = timezone.now().isoformat().replace("+00:00", "Z")
            return msgspec.structs.replace(info, Created=now)
        if not _is_time(info.Created):
            raise InvalidLockInfo("Created is not an RFC 3339 timestamp.")
        return info


def terminal_text(text: str, most: int = 1_000) -> str:
    """Return a text as a single line of at most ``most`` characters that is safe to print.

    Spaces replace the characters that control a terminal or the direction of text.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


class _Written(msgspec.Struct, frozen=True):
    """LockInfo as clients send it. As in Go, a null member counts as absent."""

    ID: str | None
    Operation: str | None = None
    Info: str | None = None
    Who: str | None = None
    Version: str | None = None
    Created: str | None = None
    Path: str | None = None


def _is_time(text: str) -> bool:
    try:
        return bool(_RFC3339.fullmatch(text)) and bool(dt.datetime.fromisoformat(text))
    except ValueError:  # a valid format, but no such day or hour
        return False
