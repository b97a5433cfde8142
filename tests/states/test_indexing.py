"""The index of resources follows the states."""

from __future__ import annotations

import contextlib
import io
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from apikeys.actors import Actor
from states.document.contents import LoadedDocument
from states.keeping import pruning, reencryption
from states.keeping.attempts import IncompleteError
from states.models import ResourceDigest, ResourceEntry, State, StateVersion
from states.resources import indexing
from tests.states.conftest import Backend, UnsteadyStorage, document
from tests.states.hostile import DOCUMENTS
from tests.states.indexed import addresses, due, found, index, with_things
from tests.states.samples import AFTER, ENCRYPTED, instance, path, resource, state
from tests.states.test_documents import new_key


def test_resource_has_type_and_address(backend: Backend) -> None:
    one = instance({"id": "i-1", "name": "web"}, index_key="a b", deposed="d0")
    backend.push(
        state(
            resource("x", one, module='module.m["k"]'),
            resource("y", instance(), index_key=None, mode="data", provider="provider.odd"),
            resource("z", *(instance(index_key=key) for key in (0, 1))),
        )
    )

    (done,) = index()

    record = backend.record
    assert done == (record.pk, 1, 4, "")
    assert (record.indexed_number, record.index_problem, due()) == (1, "", [])
    assert addresses() == [
        "data.thing.y", 'module.m["k"].thing.x["a b"]', "thing.z[0]", "thing.z[1]",
    ]  # fmt: skip
    entry = ResourceEntry.objects.get(name="x")
    assert (entry.module, entry.mode, entry.type, entry.index_key, entry.deposed) == (
        'module.m["k"]', "managed", "thing", "a b", "d0",
    )  # fmt: skip
    assert entry.provider == "example.org/x/y"
    assert (entry.state_id, entry.component_id, entry.environment_id) == (
        record.pk, backend.component_id, backend.environment_id,
    )  # fmt: skip
    assert ResourceEntry.objects.get(name="y").provider == "provider.odd"
    assert [e.index_key for e in ResourceEntry.objects.filter(name="z").order_by("address")] == [
        0, 1,
    ]  # fmt: skip


def test_resource_identifiers_are_indexed(backend: Backend) -> None:
    identity = {"account": "1", "bucket": "b", "region": None, "count": 1.5, "flag": True}
    pod = {"metadata": [{"uid": "u-1", "namespace": "shop", "name": "web"}], "id": "shop/web"}
    cluster_wide = {"metadata": [{"uid": "u-2", "name": "admins"}]}
    odd = {"id": {"a": "nested"}, "arn": None, "name": "", "self_link": ["x"], "metadata": [1]}
    backend.push(
        state(
            resource("a", instance({"id": "i-1", "arn": "arn:1", "self_link": "//1", "name": "n"})),
            resource("b", instance({"id": 12, "name": True}, identity=identity)),
            resource("c", instance(pod)),
            resource("d", instance(cluster_wide)),
            resource("e", instance(odd)),
            resource("f", {**instance(), "attributes_flat": {"id": "flat"}, "attributes": None}),
        )
    )
    index()

    for value, name in {
        "i-1": "a", "arn:1": "a", "//1": "a", "n": "a", "12": "b", "u-1": "c", "shop/web": "c",
        "u-2": "d", "admins": "d", "flat": "f",
    }.items():  # fmt: skip
        assert found(value) == [f"thing.{name}"], value
    same = {"region": None, "flag": True, "count": 1.50, "bucket": "b", "account": "1"}
    assert found(same) == found({k: v for k, v in same.items() if v}) == ["thing.b"]
    for value in ("True", "true", "", "nested", "x", "web", "shop", "b", {"bucket": "b"}):
        assert found(value) == [], value
    assert found(json.dumps(identity)) == []


def test_secrets_are_not_identifiers(backend: Backend) -> None:
    secret = "correct-horse-battery"
    marked = {"id": secret, "name": "public", "password": secret}
    backend.push(
        state(
            resource("a", instance(marked, path("password"))),
            resource("b", instance({"id": f"x-{secret}", "arn": "b"})),
            resource("c", instance({"id": "abc", "pin": "abc"}, path("pin"))),
            resource("d", instance({"id": "d"}, identity={"id": secret, "zone": "1"})),
            resource("e", instance({"id": "all"}, path())),
            resource("p", instance({"id": "generated", "result": "x"}), type="random_password"),
            resource("q", instance({"id": "https://x/?token=t"}), type="http"),
            outputs={"o": {"value": "of-an-output", "type": "string", "sensitive": True}},
        )
    )
    index()

    assert found("public") == ["thing.a"]
    assert found("b") == ["thing.b"]
    assert found("d") == ["thing.d"]
    hidden = (secret, f"x-{secret}", "abc", {"id": secret, "zone": "1"}, {"zone": "1"}, "all",
              "generated", "https://x/?token=t", "of-an-output")  # fmt: skip
    for value in hidden:
        assert found(value) == [], value


def test_push_updates_only_changed_entries(backend: Backend) -> None:
    backend.push(with_things(1, a="i-a", b="i-b", c="i-c"))
    index()
    before = {e.name: e.pk for e in ResourceEntry.objects.all()}
    backend.push(with_things(2, b="i-b", c="i-new", d="i-d"))
    assert due() == [backend.record.pk]
    assert addresses() == ["thing.a", "thing.b", "thing.c"]  # until it is its turn

    (done,) = index()

    assert (done.version_number, done.resources) == (2, 3)
    assert addresses() == ["thing.b", "thing.c", "thing.d"]
    after = {e.name: e.pk for e in ResourceEntry.objects.all()}
    assert after["b"] == before["b"]  # left alone
    assert found("i-a") == found("i-c") == []
    assert found("i-new") == ["thing.c"]
    assert index() == []


def test_repetitive_document_is_indexed(backend: Backend) -> None:
    thing = resource("a", instance({"id": "1"}), instance({"id": "1"}))
    backend.push(state(thing, thing))
    index()
    assert addresses() == ["thing.a"] * 4
    backend.push(state(thing, serial=2))

    index()

    assert addresses() == ["thing.a"] * 2


def test_index_follows_deletion_restoration_and_purge(
    backend: Backend, admin: Backend, settings: Any
) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    root = backend.root

    assert admin.delete().status_code == 200
    assert (addresses(), ResourceDigest.objects.count(), due()) == ([], 0, [])
    assert admin.client.send("POST", f"{root}:undelete", {}).status_code == 200
    assert len(index()) == 1
    assert found("i-a") == ["thing.a"]

    backend.push(with_things(2, b="i-b"))
    index()
    assert admin.call("/versions/1:restore").status_code == 200
    index()
    assert (addresses(), found("i-b"), found("i-a")) == (["thing.a"], [], ["thing.a"])
    assert backend.record.indexed_number == 3

    # Revived by a push, and deleted before it was indexed.
    assert admin.client.send("DELETE", root).status_code == 204
    backend.push(with_things(9, c="i-c"))
    assert index()[0].version_number == 4
    assert admin.delete().status_code == 200
    settings.STATE_RETENTION_DAYS = -1
    settings.STATE_VERSIONS_DAYS = -1
    list(pruning.prune(actor=Actor(name="test")))
    assert not State.objects.exists()
    assert (addresses(), index()) == ([], [])


def test_pruned_history_leaves_the_index_unchanged(backend: Backend, settings: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(with_things(serial, **{f"n{serial}": f"i-{serial}"}))
    index()
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 1, -1

    list(pruning.prune(actor=Actor(name="test")))

    assert StateVersion.objects.count() == 1
    assert (addresses(), index()) == (["thing.n3"], [])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (ENCRYPTED, "STATE_ENCRYPTED"),
        (b'{"version": 3, "serial": 2}', "STATE_FORMAT_UNSUPPORTED"),
        (state(resource("x" * 2_001, instance())), "NAMES_TOO_LONG"),
        (state(resource("x", instance(), mode="m" * 21)), "NAMES_TOO_LONG"),
        (state(resource("a\0b", instance())), "NAMES_TOO_LONG"),
        (
            state(resource("x", instance(), sensitive_attributes=[]), outputs={}).replace(
                b'"instances": [', b'"instances": [' + b"{}," * 200_000
            ),
            "STATE_TOO_COMPLEX",
        ),
    ],
)
def test_unreadable_documents_are_reported_and_not_read_again(
    backend: Backend, lock_id: uuid.UUID, body: bytes, problem: str
) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    assert backend.lock(lock_id).status_code == 200  # the lock owner may push any lineage
    assert backend.push(body, f"?ID={lock_id}").status_code == 200
    other = Backend(backend.client)
    other.push(with_things(1, good="i-good"))

    assert sorted(done.problem for done in index()) == ["", problem]

    assert backend.record.index_problem == problem
    assert addresses() == ["thing.good"]  # only the current version counts
    assert index() == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_hostile_documents_are_indexed_or_reported(backend: Backend, name: str) -> None:
    backend.push(DOCUMENTS[name](5_000))

    assert all(done.problem != indexing.UNEXPECTED for done in index())
    assert due() == []


def test_unexpected_error_does_not_stop_the_indexer(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(document())

    def fail(_loaded: LoadedDocument) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(indexing, "find_contents", fail)

    assert [done.problem for done in index()] == ["UNEXPECTED"]
    assert due() == []


def test_document_with_a_missing_key_is_retried(backend: Backend, settings: Any) -> None:
    backend.push(with_things(1, a="i-a"))
    known = settings.STATE_ENCRYPTION_KEYS
    settings.STATE_ENCRYPTION_KEYS = [new_key()]
    assert [done.problem for done in index()] == ["DOCUMENT_KEY_MISSING"]
    assert due() == []

    settings.STATE_ENCRYPTION_KEYS = [*settings.STATE_ENCRYPTION_KEYS, *known]
    indexing.mark_for_indexing()

    assert [done.problem for done in index()] == [""]
    assert found("i-a") == ["thing.a"]


@pytest.mark.parametrize(
    "problem", ["DOCUMENT_DAMAGED", "DOCUMENT_MISSING", "STORAGE_INCONSISTENT"]
)
def test_a_document_that_was_restored_is_indexed_at_the_next_start(
    backend: Backend, problem: str
) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    State.objects.update(index_problem=problem)

    indexing.mark_for_indexing()

    assert [done.problem for done in index()] == [""]


def test_a_document_with_another_problem_is_not_tried_again(backend: Backend) -> None:
    backend.push(document())
    index()
    State.objects.update(index_problem="STATE_ENCRYPTED")

    indexing.mark_for_indexing()

    assert due() == []


def test_rotate_state_keys_heals_the_index(backend: Backend, settings: Any) -> None:
    """As after an index worker that ran without the new key."""
    backend.push(with_things(1, a="i-a"))
    (old,) = settings.STATE_ENCRYPTION_KEYS
    settings.STATE_ENCRYPTION_KEYS = [new_key()]
    index()
    settings.STATE_ENCRYPTION_KEYS.append(old)

    call_command("rotate_state_keys", stdout=io.StringIO())

    assert found("i-a") == ["thing.a"]
    assert not State.objects.unreadable().exists()


def test_rotated_keys_keep_all_entries(backend: Backend, settings: Any) -> None:
    (old,) = settings.STATE_ENCRYPTION_KEYS
    backend.push(with_things(1, a="i-a"))
    index()
    before = set(ResourceDigest.objects.values_list("digest", flat=True))

    # 1. With both keys, digests of the old key are found.
    new = new_key()
    settings.STATE_ENCRYPTION_KEYS = [new, old]
    assert found("i-a") == ["thing.a"]
    # 2. The digests are recomputed, and the old key can be removed.
    call_command("rotate_state_keys", stdout=io.StringIO())
    assert found("i-a") == ["thing.a"]
    settings.STATE_ENCRYPTION_KEYS = [new]
    assert found("i-a") == ["thing.a"]
    assert before.isdisjoint(ResourceDigest.objects.values_list("digest", flat=True))
    # 3. And it is the end of it.
    indexing.mark_for_indexing()
    assert index() == []


def test_a_key_that_is_gone_too_early_is_noticed(backend: Backend, settings: Any) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    list(reencryption.rotate_keys())
    settings.STATE_ENCRYPTION_KEYS = settings.STATE_ENCRYPTION_KEYS[:1]

    indexing.mark_for_indexing()

    assert due() == [backend.record.pk]
    index()
    assert found("i-a") == ["thing.a"]


def test_states_deleted_by_a_release_without_the_index(backend: Backend) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    State.objects.update(deleted_at=backend.record.updated_at)

    indexing.mark_for_indexing()

    assert (addresses(), ResourceDigest.objects.count(), due()) == ([], 0, [])


def test_all_states_are_indexed_again(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_STATES", 2)
    others = [Backend(backend.client) for _ in range(5)]
    for each in others:
        each.push(with_things(1, a="i-a"))
    index()
    ids = set(ResourceEntry.objects.values_list("pk", flat=True))

    indexing.mark_for_indexing(everything=True)

    assert len(due()) == 5
    assert len(found("i-a")) == 5  # meanwhile
    assert len(index()) == 5
    assert set(ResourceEntry.objects.values_list("pk", flat=True)) == ids


def test_the_object_store_is_away(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(with_things(1, a="i-a"))
    store.failing = True
    with pytest.raises(IncompleteError, match="1 failed"):
        index()
    assert due() == [backend.record.pk]

    store.failing = False

    assert len(index()) == 1


class Killed(BaseException):
    """A process that ends."""


@contextlib.contextmanager
def killed_before(statement: int) -> Iterator[None]:
    """End the process before its statement of this number."""
    left = statement

    def run(execute: Any, *args: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            raise Killed
        return execute(*args)

    with connection.execute_wrapper(run):
        yield


def test_kill_at_any_point_leaves_a_consistent_index(backend: Backend) -> None:
    backend.push(with_things(1, a="i-a", b="i-b"))
    index()
    backend.push(with_things(2, b="i-b", c="i-c"))
    statement, ended = 0, False
    while not ended:
        # The block is rolled back, as the database does it with the transaction of the dead.
        with contextlib.suppress(Killed), transaction.atomic():
            with killed_before(statement):
                index()
            ended = True
        if not ended:
            assert (addresses(), found("i-a")) == (["thing.a", "thing.b"], ["thing.a"])
            assert due() == [backend.record.pk]
        statement += 1

    assert statement > 8
    assert (addresses(), found("i-c"), due()) == (["thing.b", "thing.c"], ["thing.c"], [])


def test_a_push_between_the_look_and_the_write(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(with_things(1, a="i-a"))
    real = indexing.find_contents
    pending = [lambda: backend.push(with_things(2, b="i-b"))]

    def find(loaded: LoadedDocument) -> Any:
        if pending:
            assert pending.pop()().status_code == 200
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)

    assert index() == []
    assert addresses() == []
    assert [done.version_number for done in index()] == [2]
    assert addresses() == ["thing.b"]


def test_a_deletion_between_the_look_and_the_write(
    backend: Backend, admin: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(with_things(1, a="i-a"))
    real = indexing.find_contents

    def find(loaded: LoadedDocument) -> Any:
        assert admin.delete().status_code == 200
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)

    assert index() == []
    assert (addresses(), due()) == ([], [])


def test_another_indexer_was_faster(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.push(with_things(1, a="i-a"))
    real = indexing.find_contents

    def find(loaded: LoadedDocument) -> Any:
        monkeypatch.setattr(indexing, "find_contents", real)
        assert len(index()) == 1
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)

    assert index() == []
    assert addresses() == ["thing.a"]


def test_push_needs_no_additional_queries(backend: Backend, django_assert_num_queries: Any) -> None:
    backend.push(with_things(1, a="i-a"))
    index()
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 6):
        backend.push(with_things(2, b="i-b"))


def test_resources_of_real_documents_are_indexed(backend: Backend) -> None:
    backend.push(AFTER)

    (done,) = index()

    listed = backend.client.items(f"{backend.root}/resources", "resources")
    assert addresses() == sorted(one["address"] for one in listed)
    assert done.resources == len(listed) == 16
