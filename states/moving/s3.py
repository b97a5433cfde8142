"""A bucket with state files in S3 or a compatible store, as a source of an import."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from states.moving.s3_client import SCHEME
from states.moving.sources import (
    ChangedError,
    SourceError,
    SourceState,
    SourceVersion,
    TooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    _Object = tuple[str, list[SourceVersion]]

#: The suffix of a lock object, which contains LockInfo. The s3 backend (``use_lockfile``) appends
#: the suffix to the key of the state, and the gcs backend replaces ``.tfstate``.
_LOCK: Final = ".tflock"
_STATE: Final = ".tfstate"
_NO_STATES: Final = ("/", ".backup")
#: The folder in which Terraform stores the address of its backend, in a ``.tfstate`` file.
_OWN_FOLDER: Final = re.compile(r"(?:^|/)\.terraform/")
#: The maximum bytes to read of a LockInfo, which is usually a few hundred bytes.
_LOCK_BYTES: Final = 64 * 1024
#: The id of every version that S3 stored without versioning. The ETag is added, so that different
#: contents are different versions.
_NULL: Final = "null"
_NULL_WITH: Final = "null/"
#: The prefix of an object's id in a store without versions, such as Google's.
_PRESENT: Final = "etag/"
_NO_VERSION_LISTING: Final = frozenset({"NotImplemented", "MethodNotAllowed", "InvalidArgument"})
_REFUSED: Final = frozenset({
    "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
    "InvalidToken",
})  # fmt: skip
_MISSING: Final = frozenset({"404", "NoSuchKey", "NoSuchVersion"})
_CHANGED: Final = frozenset({"412", "PreconditionFailed"})


@dataclass(frozen=True, slots=True)
class _Listed(SourceState):
    """A state with its versions, oldest first, from a single listing."""

    versions: list[SourceVersion] = field(default_factory=list)


class Bucket:
    """The objects in a bucket with a prefix, which is treated as a folder."""

    #: The number of keys or versions per page of a listing.
    page_size = 1000

    def __init__(self, client: Any, bucket: str, folder: str) -> None:
        self._client = client
        self._bucket = bucket
        folder = folder.strip("/")
        self._folder = f"{folder}/" if folder else ""
        self.name = f"{SCHEME}{bucket}/{folder}".rstrip("/")

    def states(self) -> Iterator[SourceState]:
        """Yield the states of all objects whose latest version is not a delete marker."""
        with self._answering():
            for key, versions, lock in _with_locks(self._objects()):
                holder = None if lock is None else self._holder(lock)
                yield _Listed(key.removeprefix(self._folder), holder, versions=versions)

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the versions of an object, including versions before a deletion."""
        return cast("_Listed", state).versions[0 if most is None else -most :]

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        parameters = {"Bucket": self._bucket, "Key": self._folder + state.key}
        if version.id.startswith(_PRESENT):
            parameters["IfMatch"] = version.id.removeprefix(_PRESENT)
        elif version.id.startswith(_NULL_WITH):
            parameters |= {"VersionId": _NULL, "IfMatch": version.id.removeprefix(_NULL_WITH)}
        else:
            parameters["VersionId"] = version.id
        return self._content(parameters, limit)

    def _content(self, parameters: dict[str, str], limit: int) -> bytes:
        """Return the content of an object of limited size.

        Raises:
            TooLargeError, SourceError: the object exceeds the limit, or is unreadable.
        """
        with self._answering():
            answer = self._client.get_object(**parameters)
            with answer["Body"] as body:
                if answer["ContentLength"] > limit:
                    raise TooLargeError(answer["ContentLength"], limit)
                # The body counts its bytes, and raises an error for fewer bytes than announced.
                content: bytes = body.read()
        return content

    def _objects(self) -> Iterator[_Object]:
        """Yield the current objects, in the order of their keys."""
        operation, name = (
            ("list_object_versions", "Versions")
            if self._lists_versions
            else ("list_objects_v2", "Contents")
        )
        pages = self._client.get_paginator(operation).paginate(
            Bucket=self._bucket, Prefix=self._folder, PaginationConfig={"PageSize": self.page_size}
        )
        entries = (entry for page in pages for entry in page.get(name, ()))
        # The newest version of an object is listed first.
        for key, group in groupby(entries, itemgetter("Key")):
            newest, *older = group
            if newest.get("IsLatest", True):
                yield key, [_version(entry) for entry in (newest, *older)][::-1]

    @cached_property
    def _lists_versions(self) -> bool:
        """Return whether the store lists versions with ids, like S3."""
        try:
            page = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=self._folder, MaxKeys=1
            )
        except self._client.exceptions.ClientError as error:
            if _code(error) in _NO_VERSION_LISTING:
                return False
            raise
        return all("VersionId" in entry for entry in page.get("Versions", ()))

    def _holder(self, lock: str) -> str:
        """Return the owner of the lock in the object with this key."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=lock)
            who = json.loads(answer["Body"].read(_LOCK_BYTES)).get("Who")
        except (self._client.exceptions.ClientError, ValueError, AttributeError):
            who = None  # released since then, not readable, or written by another program
        return str(who or "an unknown client")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Convert errors of boto3 into a SourceError. boto3 already retried temporary errors.

        Raises:
            SourceError: the store refused the request, or did not respond.
        """
        from botocore.exceptions import (  # noqa: PLC0415 - of an extra
            BotoCoreError,
            ClientError,
            ConnectionError,  # noqa: A004 - boto's own name
            HTTPClientError,
            NoCredentialsError,
            ProxyConnectionError,
        )
        from botocore.parsers import ResponseParserError  # noqa: PLC0415 - of an extra

        try:
            yield
        except ClientError as error:
            raise SourceError(self._sentence(error)) from error
        except NoCredentialsError as error:
            raise SourceError(
                "The credentials for S3 are missing. Set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            ) from error
        except ProxyConnectionError as error:
            raise SourceError(
                f"{self._endpoint} does not respond through the proxy in HTTPS_PROXY."
            ) from error
        except (HTTPClientError, ConnectionError) as error:
            raise SourceError(
                f"{self._endpoint} does not respond. Check AWS_ENDPOINT_URL."
            ) from error
        except (BotoCoreError, ResponseParserError, LookupError, TypeError, ValueError) as error:
            raise SourceError(f"{self.name} cannot be read: {type(error).__name__}.") from error

    def _sentence(self, error: Any) -> str:
        code, operation = _code(error), error.operation_name
        if code == "NoSuchBucket":
            return f"The bucket {self._bucket} does not exist at {self._endpoint}."
        if code in _REFUSED:
            return (
                f"{self._endpoint} refuses {operation} in bucket {self._bucket} ({code}). "
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, to "
                "credentials with s3:ListBucket, s3:ListBucketVersions, s3:GetObject and "
                "s3:GetObjectVersion."
            )
        if code in _MISSING:
            return "The object no longer exists."
        if code in _CHANGED:
            return str(ChangedError())
        return f"{self._endpoint} responds to {operation} with {code}."

    @property
    def _endpoint(self) -> str:
        endpoint: str = self._client.meta.endpoint_url
        return endpoint


def _with_locks(
    objects: Iterable[_Object],
) -> Iterator[tuple[str, list[SourceVersion], str | None]]:
    """Yield each state with its versions, and the key of its lock object, if any.

    S3 lists keys in order, so every key between a state and its lock starts with the state's key.
    The function keeps a state in memory until a key does not start with the key of the state. The
    lock object of the gcs backend precedes its state.
    """
    waiting: dict[str, list[SourceVersion]] = {}
    locks: dict[str, str] = {}
    for key, versions in objects:
        for state in [state for state in waiting if not key.startswith(state)]:
            yield state, waiting.pop(state), locks.pop(state, None)
        if key.endswith(_LOCK):
            name = key.removesuffix(_LOCK)
            locks[name] = locks[name + _STATE] = key
        elif not key.endswith(_NO_STATES) and not _OWN_FOLDER.search(key):
            waiting[key] = versions
    yield from ((state, versions, locks.get(state)) for state, versions in waiting.items())


def _version(entry: dict[str, Any]) -> SourceVersion:
    name = entry.get("VersionId", _PRESENT + entry["ETag"])
    if name == _NULL:
        name = _NULL_WITH + entry["ETag"]
    return SourceVersion(name, entry["LastModified"], size_bytes=entry["Size"])


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
