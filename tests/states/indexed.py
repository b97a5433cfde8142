"""Helpers of the resource index tests."""

from __future__ import annotations

import json
from typing import Any

from states.models import ResourceDigest, ResourceEntry, State
from states.resources import indexing
from states.resources.digests import digests
from tests.states.samples import instance, resource, state


def index() -> list[indexing.Indexed]:
    return list(indexing.index_due())


def addresses(**of: Any) -> list[str]:
    return sorted(ResourceEntry.objects.filter(**of).values_list("address", flat=True))


def found(value: Any) -> list[str]:
    """Return the addresses of the resources that the value identifies."""
    ids = ResourceDigest.objects.filter(digest__in=digests(value)).values("entry_id")
    return addresses(pk__in=ids)


def due() -> list[Any]:
    return list(State.objects.due().values_list("pk", flat=True))


def with_things(serial: int, **ids: str) -> bytes:
    """Return a document with a resource of each name, which has the id."""
    things = [resource(name, instance({"id": value})) for name, value in ids.items()]
    return json.dumps({**json.loads(state(*things)), "serial": serial}).encode()
