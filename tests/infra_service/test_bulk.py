"""Rows written in bulk are read back unchanged, on each database."""

import datetime as dt
import uuid

import pytest
from django.utils import timezone

from apikeys.models import ApiKey, User
from tools.bench.loading import insert

TEXTS = ["plain", "a\tb\nc\\d\r", r"\N", "é €"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("is_full", [True, False])
def test_binary_json_and_null_values_are_written(db: None, text: str, is_full: bool) -> None:
    now = timezone.now()
    key = ApiKey(
        id="key-1",
        name=text,
        digest=b"\\\x00\n\t" + bytes(range(28)),
        previous_digest=b"\xff" * 32 if is_full else None,
        previous_digest_expires_at=now if is_full else None,
        scopes=[text, "states:read"],
        bound_cluster_id=None if is_full else uuid.UUID(int=7),
        bound_component_ids=[text] if is_full else None,
        created_by=User.objects.create_user("bulk"),
        created_at=now,
        expires_at=now + dt.timedelta(days=1) if is_full else None,
    )

    insert([key])

    (stored,) = ApiKey.objects.all()
    for field in ApiKey._meta.concrete_fields:
        value = getattr(stored, field.attname)
        value = bytes(value) if isinstance(value, memoryview) else value
        assert value == getattr(key, field.attname), field.name
