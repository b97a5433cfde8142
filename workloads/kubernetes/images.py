"""Parse image references, and find the images that workloads run.

The grammar follows https://github.com/distribution/reference, with Docker's defaults.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from workloads.kubernetes.facts import MAX_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Maximum characters of a repository: its registry (a DNS name and a port) and 255 for the path.
MAX_REPOSITORY: Final = 520
MAX_TAG: Final = 128
MAX_DIGEST: Final = 135

_LONGEST: Final = MAX_REPOSITORY + 1 + MAX_TAG + 1 + MAX_DIGEST

_DEFAULT_REGISTRY: Final = "docker.io"
_OLD_DEFAULT_REGISTRY: Final = "index.docker.io"
_DEFAULT_TAG: Final = "latest"
_MAX_PATH: Final = 255
_MAX_REGISTRY: Final = MAX_REPOSITORY - _MAX_PATH - 1

_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY: Final = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?", re.ASCII
)
_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH: Final = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*", re.ASCII)
_TAG: Final = re.compile(rf"\w[\w.-]{{0,{MAX_TAG - 1}}}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
# The form of an image id, which is not a valid name.
_ID: Final = re.compile(r"[0-9a-f]{64}")


class Image(NamedTuple):
    """An image. ``repository`` begins with the registry. Tag and digest are empty if unknown."""

    repository: str
    tag: str
    digest: str


def parse_image(text: str) -> Image | None:
    """Parse a reference such as ``nginx:1.27@sha256:…``. Return None if it is invalid.

    If the reference has no tag and no digest, the tag is ``latest``.
    """
    # The cache must keep only short texts. All valid references are short.
    return _parsed(text) if len(text) <= _LONGEST and text.isascii() else None


@lru_cache(maxsize=16384)
def _parsed(text: str) -> Image | None:
    named, at, digest = text.partition("@")
    name, tag = _without_tag(named)
    repository = _repository(name)
    if repository is None or (at and not _DIGEST.fullmatch(digest)):
        return None
    if tag is not None and not _TAG.fullmatch(tag):
        return None
    return Image(repository, tag or ("" if at else _DEFAULT_TAG), digest)


class RunsImages(Protocol):
    """A container with the image in its template and references to the running images."""

    @property
    def image(self) -> str: ...
    @property
    def running(self) -> Sequence[str]: ...


class ContainerImages(msgspec.Struct, gc=False):
    """The fields of a stored container that identify its images."""

    image: str
    running: list[str] = []


_STORED: Final = msgspec.json.Decoder(list[ContainerImages])


def images_of(containers: Iterable[RunsImages]) -> list[Image]:
    """Return the distinct images of containers: the running images, else the template's image.

    Skip invalid references.
    """
    found: dict[Image, None] = {}
    for container in containers:
        for reference in container.running or (container.image,):
            if (image := parse_image(reference)) is not None:
                found[image] = None
    return list(found)


def stored_images(containers: str | msgspec.Raw) -> list[Image]:
    """Return the images of containers stored as JSON."""
    return images_of(_STORED.decode(containers))


def full_repository(text: str) -> str:
    """Return the full repository of a name without a tag, or the text if it is invalid."""
    is_short = len(text) <= MAX_REPOSITORY and text.isascii()
    return (_repository(text) if is_short else None) or text


def registry_of(repository: str) -> str:
    return repository.partition("/")[0]


def running_image(image: str, image_id: str) -> str:
    """Return a reference to the running image, or "" while its digest is unknown.

    ``image`` comes from the pod spec, and ``image_id`` is the ``imageID`` in the pod status. If the
    node does not know a registry digest, ``imageID`` is the image id, which is also a digest.
    """
    digest = _digest(image_id)
    running = f"{image.partition('@')[0]}@{digest}"
    return running if image and digest and len(running) <= MAX_IMAGE else ""


def _digest(image_id: str) -> str:
    """Return the digest in an ``imageID`` such as ``docker-pullable://nginx@sha256:…``."""
    last = image_id.rpartition("@")[2].rpartition("://")[2]
    digest = f"sha256:{last}" if _ID.fullmatch(last) else last
    return digest if _DIGEST.fullmatch(digest) else ""


def _without_tag(named: str) -> tuple[str, str | None]:
    """Split a reference into name and tag. A colon before a port does not begin a tag."""
    name, colon, tag = named.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (named, None)


@lru_cache(maxsize=16384)
def _repository(name: str) -> str | None:
    first, slash, rest = name.partition("/")
    is_registry = slash and (
        "." in first or ":" in first or first == "localhost" or first != first.lower()
    )
    registry, path = (first, rest) if is_registry else (_DEFAULT_REGISTRY, name)
    if registry == _OLD_DEFAULT_REGISTRY:
        registry = _DEFAULT_REGISTRY
    if _ID.fullmatch(name) or len(registry) > _MAX_REGISTRY:
        return None
    if registry == _DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    if len(path) > _MAX_PATH or not (_REGISTRY.fullmatch(registry) and _PATH.fullmatch(path)):
        return None
    return f"{registry}/{path}"
