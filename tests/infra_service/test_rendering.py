"""The JSON that PostgreSQL writes is the JSON of the serializer, byte by byte where bytes count."""

import datetime as dt
import json
import uuid
from typing import Any, ClassVar

import msgspec
import pytest
from django.db import connection
from django.db.models import F, Value
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework import serializers

from apikeys.api.serializers import ApiKeySerializer, AuditEventSerializer
from apikeys.models import AuditEvent
from infra_service.lib.api import row_json
from infra_service.lib.api.fields import PresentSerializer, TimestampField
from infra_service.lib.api.rendering import JsonRenderer, ListReader
from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from states.api.serializers import StateSerializer
from states.models import Component, Environment, State
from tests.conftest import LONG_AGO
from tests.workloads.conftest import NewWorkload
from workloads.api.serializers import WorkloadSerializer
from workloads.models import Cluster, Workload

postgres = pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL writes JSON")


class View:
    def __init__(self, serializer_class: Any) -> None:
        self.serializer_class = serializer_class

    def get_serializer_class(self) -> Any:
        return self.serializer_class


def read(queryset: Any, serializer_class: Any, *key: str) -> tuple[ListReader, Any]:
    """Return the reader, and the rows as it reads them."""
    reader = ListReader(View(serializer_class), list(key or ("id",)))
    return reader, reader.read(queryset, ["id"], 100)


def written(queryset: Any, serializer_class: Any) -> list[str]:
    """Return the rows as PostgreSQL writes them."""
    found, rows = read(queryset, serializer_class)
    assert found.written
    return [bytes(text).decode() for text in found.items(rows)]


def ordinary(rows: Any, serializer_class: Any) -> list[str]:
    """Return the rows as the serializer shows them, each as JSON."""
    shown = serializer_class(rows, many=True).data
    return [JsonRenderer().render(row).decode() for row in shown]


def in_order(text: str) -> Any:
    """Return the values with the order of the keys, but not the space between them."""
    return json.loads(text, object_pairs_hook=lambda pairs: pairs)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_FIRST, _LAST = dt.datetime(1971, 1, 1), dt.datetime(2200, 1, 1)  # noqa: DTZ001 - hypothesis' form
MOMENTS = st.datetimes(_FIRST, _LAST, timezones=st.just(dt.UTC))


@postgres
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lineage=st.none() | TEXTS, user=TEXTS, name=TEXTS, moment=MOMENTS, locked=st.booleans())
def test_states_are_rendered(
    db: None, *, lineage: str | None, user: str, name: str, moment: dt.datetime, locked: bool
) -> None:
    state = State(
        id=uuid.UUID(int=int(moment.timestamp() * 1000) << 80),
        component=Component.objects.create(name=name),
        environment=Environment.objects.create(),
        lineage=lineage,
        created_at=moment,
        updated_at=moment,
    )
    if locked:
        state.lock_id, state.lock_acquired_at = uuid.uuid4(), moment
        state.lock_info = {"Operation": user, "Who": user, "Version": ""}
    State.objects.all().delete()
    state.save()

    states = State.objects.with_names()
    expected = ordinary(states, StateSerializer)
    assert written(states, StateSerializer) == expected
    assert ("lock" in json.loads(expected[0])) is locked


@postgres
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.dictionaries(TEXTS, TEXTS, max_size=4),
    reason=TEXTS,
    used=st.none() | st.integers(0, 2**63 - 1),
    image=TEXTS,
)
def test_workloads_are_rendered(
    workload: NewWorkload, *, labels: dict[str, str], reason: str, used: int | None, image: str
) -> None:
    Workload.objects.all().delete()
    container = {"name": "a", "image": image, "restart_count": 3, "state": "", "ready": False}
    workload(labels=labels, status_reason=reason, cpu_used_millicores=used, containers=[container])
    rows = Workload.objects.annotate(
        last_updated_at=F("observed_at"), cluster_name=ColumnOf(Cluster, "cluster_id", "name")
    )

    (text,), (expected,) = (way(rows, WorkloadSerializer) for way in (written, ordinary))
    assert in_order(text) == in_order(expected)
    # jsonb is written with spaces; all else is the same bytes.
    before, after = text.split('"labels":')[0], text.split('"health_status":')[1]
    assert expected.startswith(before)
    assert expected.endswith(after)


@pytest.mark.skipif(connection.vendor == "postgresql", reason="where the rows are values()")
def test_rows_are_rendered_without_instances(db: None) -> None:
    state = State.objects.create(
        component=Component.objects.create(), environment=Environment.objects.create()
    )
    found, (row,) = read(State.objects.with_names(), StateSerializer, "id")

    assert not found.written
    assert {*row} > {"id", "component_id", "component_name"}
    states = State.objects.with_names().filter(pk=state.pk)
    assert ordinary([row], StateSerializer) == ordinary(states, StateSerializer)


class Base(serializers.Serializer[Any]):
    id = serializers.UUIDField()


class OwnForm(serializers.CharField):
    def to_representation(self, value: Any) -> str:
        return f"<{value}>"


class OwnShape(Base):
    def to_representation(self, instance: Any) -> dict[str, Any]:
        return {"id": instance}


class UnknownField(Base):
    lineage = OwnForm()


class NoColumn(Base):
    nothing = serializers.CharField()


class AnotherType(Base):
    """A number as text: PostgreSQL would write it in another form."""

    serial = serializers.CharField()


class TooDeep(Base):
    lock = serializers.CharField(source="lock_info.Who.name")


class NotJson(Base):
    lock = serializers.CharField(source="lineage.name")


class Related(Base):
    component = serializers.UUIDField()


class Method(Base):
    size = serializers.SerializerMethodField()

    def get_size(self, _instance: Any) -> int:
        return 1


class Nested(Base):
    class Part(PresentSerializer):
        present_with: ClassVar[str] = "no_column"
        serial = serializers.IntegerField()

    part = Part()


class NestedUnknown(Base):
    class Part(PresentSerializer):
        present_with: ClassVar[str] = "lock_id"
        serial = serializers.CharField()

    part = Part()


@pytest.mark.both
@pytest.mark.parametrize(
    "serializer",
    [
        OwnShape,
        UnknownField,
        NoColumn,
        AnotherType,
        TooDeep,
        NotJson,
        Related,
        Method,
        Nested,
        NestedUnknown,
    ],
)
def test_unsupported_serializer_uses_the_ordinary_path(db: None, serializer: Any) -> None:
    state = State.objects.create(
        component=Component.objects.create(), environment=Environment.objects.create()
    )
    found, rows = read(State.objects.all(), serializer)

    assert not found.written
    assert rows == [state]


def test_unsupported_models_use_the_ordinary_path(db: None) -> None:
    """An address has another text in PostgreSQL, and a key has properties."""
    for queryset, serializer in (
        (AuditEvent.objects.all(), AuditEventSerializer),
        (State.objects.all(), ApiKeySerializer),
    ):
        found, rows = read(queryset, serializer)
        assert not found.written
        assert rows == list(queryset)


class Secretive(Base):
    serial = serializers.IntegerField(write_only=True)
    ready = serializers.BooleanField()
    word = serializers.ChoiceField(["a"], allow_null=True)
    at = TimestampField()


def test_hidden_annotations_and_fields_are_not_selected(db: None) -> None:
    State.objects.create(
        component=Component.objects.create(), environment=Environment.objects.create()
    )
    rows = State.objects.annotate(ready=Value(True), word=F("lineage"), at=Value(LONG_AGO))
    found, _ = read(rows, Secretive)

    state = State.objects.get()
    shown = [
        {"id": str(state.pk), "ready": True, "word": None, "at": "2020-01-01T00:00:00.000000Z"}
    ]
    if found.written:
        assert [json.loads(text) for text in written(rows, Secretive)] == shown
    assert Secretive(list(rows.values()), many=True).data == shown


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (None, b""),
        ({"a": [1, None, True, "ü\u2028"]}, '{"a":[1,null,true,"ü\u2028"]}'.encode()),
        ({"a": msgspec.Raw(b'{"b": 1}')}, b'{"a":{"b": 1}}'),
        ({"a": serializers.ErrorDetail("x", "y")}, b'{"a":"x"}'),
    ],
)
def test_renderer_encodes_every_type(data: Any, body: bytes) -> None:
    assert JsonRenderer().render(data) == body


def test_each_known_field_has_a_form_of_its_own() -> None:
    """A class that inherits ``to_representation`` would be mistaken for its parent."""
    assert len(row_json._FORMS) == 8
