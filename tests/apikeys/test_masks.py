"""Fields cleared by a mask get their default, or null."""

from typing import Any

import pytest
from rest_framework import serializers

from infra_service.lib.api import masks


class Thing(serializers.Serializer[Any]):
    name = serializers.CharField()
    note = serializers.CharField(allow_null=True)
    labels = serializers.DictField(default=dict)
    kind = serializers.CharField(default="plain")
    id = serializers.CharField(read_only=True)


FULL = {"name": "x", "note": "y", "labels": {"a": "b"}, "kind": "z"}


@pytest.mark.parametrize(
    ("fields", "mask", "selected"),
    [
        (FULL, None, FULL),
        (
            {"labels": None, "kind": None, "note": None},
            None,
            {"labels": {}, "kind": "plain", "note": None},
        ),
        ({}, {"labels", "note"}, {"labels": {}, "note": None}),
        ({"name": "x"}, {"*"}, {"name": "x", "note": None, "labels": {}, "kind": "plain"}),
        ({"id": "i", "name": "x"}, None, {"name": "x"}),
        ({"id": "i", "name": "x"}, {"id"}, {}),
        ({"other": 1}, {"name"}, {"other": 1, "name": None}),
    ],
)
def test_mask_selects_fields(
    fields: dict[str, Any], mask: set[str] | None, selected: dict[str, Any]
) -> None:
    chosen = None if mask is None else frozenset(mask)

    assert masks.select(fields, chosen, Thing().fields) == selected
