"""No difference means that two documents differ in nothing that Terraform or OpenTofu reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from states.document import contents, sealing
from states.document.hidden import MASK, digest_of
from tests.states.conftest import Backend
from tests.states.samples import instance, path, resource, state
from tests.support.people import person, text_of

CASES = Path(__file__).parent / "fixtures" / "cases"
ABSENT: Any = object()


class Member(NamedTuple):
    """A member of a document: where it is, its values, and which of them mean the same."""

    place: tuple[Any, ...]
    values: st.SearchStrategy[Any]
    plain: Any = None  # equal to absent, null and empty


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
_flags = st.booleans()
_numbers = st.integers(0, 3)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["map", "list", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
_objects = st.dictionaries(st.sampled_from("ab"), _json, min_size=1, max_size=2)
_addresses = st.lists(st.sampled_from(["a.b", "c.d", "e.f"]), unique=True)
_paths = st.lists(
    st.sampled_from([path("a"), path("b"), path("a", 0), path("a", "[0"), path("[a"), []]),
    unique_by=json.dumps,
)
OUTPUT = ("outputs", "o")
RESOURCE = ("resources", 0)
INSTANCE = (*RESOURCE, "instances", 0)
CHECK = ("check_results", 0)
MEMBERS = [
    Member(("terraform_version",), st.sampled_from(["1.5.0", "1.11.4"]), ""),
    Member((*OUTPUT, "value"), _json),
    Member((*OUTPUT, "type"), st.sampled_from(["string", "number", ["list", "string"]])),
    Member((*OUTPUT, "sensitive"), _flags, False),
    Member((*OUTPUT, "deprecated"), _text),
    Member((*RESOURCE, "module"), st.sampled_from(["module.a", "module.b"]), ""),
    Member((*RESOURCE, "mode"), st.sampled_from(["managed", "data"]), ABSENT),
    Member((*RESOURCE, "type"), st.sampled_from(["a", "b"]), ABSENT),
    Member((*RESOURCE, "name"), st.sampled_from(["a", "b"]), ABSENT),
    Member((*RESOURCE, "each"), st.sampled_from(["list", "map"]), ""),
    Member((*RESOURCE, "provider"), st.sampled_from(["p", "q"]), ""),
    Member((*INSTANCE, "provider"), st.sampled_from(["p", "q"]), ""),
    Member((*INSTANCE, "index_key"), _numbers | _text),
    Member((*INSTANCE, "status"), st.just("tainted"), ""),
    Member((*INSTANCE, "deposed"), st.sampled_from(["00000001", "00000002"]), ""),
    Member((*INSTANCE, "schema_version"), _numbers, 0),
    Member((*INSTANCE, "attributes"), _objects),
    Member((*INSTANCE, "attributes_flat"), _objects),
    Member((*INSTANCE, "sensitive_attributes"), _paths, []),
    Member((*INSTANCE, "identity_schema_version"), _numbers, 0),
    Member((*INSTANCE, "identity"), _objects),
    Member((*INSTANCE, "private"), _text, ""),
    Member((*INSTANCE, "dependencies"), _addresses, []),
    Member((*INSTANCE, "depends_on"), _addresses, []),
    Member((*INSTANCE, "create_before_destroy"), _flags, False),
    Member((*INSTANCE, "skip_destroy"), _flags, False),
    Member((*CHECK, "object_kind"), st.sampled_from(["check", "output"]), ""),
    Member((*CHECK, "config_addr"), st.sampled_from(["check.a", "check.b"]), ""),
    Member((*CHECK, "status"), st.sampled_from(["pass", "fail", "error"]), ""),
    Member((*CHECK, "objects", 0, "object_addr"), st.sampled_from(["check.a", "check.c"]), ""),
    Member((*CHECK, "objects", 0, "status"), st.sampled_from(["pass", "fail"]), ""),
    Member((*CHECK, "objects", 0, "failure_messages"), st.lists(_text, max_size=2), []),
]  # fmt: skip


def with_value(member: Member, value: Any) -> bytes:
    """Return a document with this value of the member and otherwise minimal content."""
    check = {"object_kind": "check", "config_addr": "check.z", "status": "pass", "objects": [{}]}
    document = {
        "version": 4, "serial": 1, "lineage": "l", "outputs": {"o": {}}, "check_results": [check],
        "resources": [{"mode": "managed", "type": "t", "name": "n", "instances": [{}]}],
    }  # fmt: skip
    holder: Any = document
    for step in member.place[:-1]:
        holder = holder[step]
    if value is not ABSENT:
        holder[member.place[-1]] = value
    elif member.plain is not ABSENT:
        holder.pop(member.place[-1], None)
    return json.dumps(document).encode()


def meaning(member: Member, value: Any) -> str:
    """Return JSON that is the same for all values that mean the same."""
    if value is ABSENT or value is None:
        value = member.plain
    if isinstance(value, list) and member.place[0] == "resources":
        value = sorted(value, key=json.dumps)
    return json.dumps(value, sort_keys=True)


def difference(before: bytes, after: bytes, *, hide: bool = True) -> contents.ChangePage:
    sides = map(sealing.compress, (before, after))
    return contents.diff(*sides, start=0, size=100, hide=hide)


def is_empty(page: contents.ChangePage) -> bool:
    lists = (page.outputs, page.resources, page.check_results)
    is_listed = any(msgspec.json.decode(found) for found in lists)
    assert is_listed == any(sum(astuple(counts)) for counts in astuple(page.summary))
    return not is_listed and not page.metadata


@pytest.mark.slow
@given(data=st.data())
@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: ".".join(map(str, member.place)))
def test_each_member_counts(member: Member, data: st.DataObject) -> None:
    values = member.values
    if member.plain is not ABSENT:
        values |= st.sampled_from([ABSENT, None])
    before, after = data.draw(values), data.draw(values)

    page = difference(with_value(member, before), with_value(member, after))

    assert is_empty(page) == (meaning(member, before) == meaning(member, after))


@given(before=_json, after=_json)
def test_digests_differ_where_values_do(before: Any, after: Any) -> None:
    same = json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)

    assert (digest_of(before) == digest_of(after)) == same


@pytest.mark.parametrize(
    ("old", "new"), [({}, "map"), ([], "list"), ({"a": {}}, {"a": "map"}), ([[]], ["list"])]
)
def test_a_hidden_change_of_kind_is_a_change(old: Any, new: Any) -> None:
    before, after = (state(resource("x", instance({"s": v}, path("s")))) for v in (old, new))

    (found,) = msgspec.json.decode(difference(before, after).resources)

    assert found["attributes"] == [
        {"path": "s", "action": "CHANGED", "before": MASK, "after": MASK, "sensitive": True}
    ]


def test_changed_identity_is_a_difference(backend: Backend, seeing: Backend) -> None:
    for name in ("before", "after"):
        document = (CASES / f"02-identity-only/{name}.tfstate").read_bytes()
        assert backend.push(document).status_code == 200

    diff = backend.look("/versions/2/diff").json()["diff"]

    assert diff["summary"]["resources"] == {"added": 0, "changed": 1, "removed": 0}
    (change,) = diff["resources"]
    assert (change["action"], change["attributes"]) == ("CHANGED", [])
    version, identity = change["metadata"]
    assert version == {"field": "identity_schema_version", "before": 0, "after": 1}
    url = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs"
    assert identity == {
        "field": "identity",
        "before": {"account_id": "111122223333", "region": "eu-west-1", "url": url},
        "after": {"url": url},
    }
    page = f"/admin/states/state/{backend.record.pk}/compare/"
    shown = text_of(person("viewer").get(page, {"before": 1, "after": 2}))
    assert "identity_schema_version 0 1" in shown
    assert "111122223333" in shown


def test_sensitive_values_are_masked_in_identities() -> None:
    secret = "correct-horse-battery"
    before, after = (
        state(resource("x", instance({"p": secret}, path("p"), identity={"p": secret, "n": n})))
        for n in (1, 2)
    )

    (found,) = msgspec.json.decode(difference(before, after).resources)
    assert found["metadata"] == [
        {"field": "identity", "before": {"p": MASK, "n": 1}, "after": {"p": MASK, "n": 2}}
    ]
    (found,) = msgspec.json.decode(difference(before, after, hide=False).resources)
    assert found["metadata"][0]["before"]["p"] == secret


def test_private_data_is_never_shown() -> None:
    before, after = (state(resource("x", instance(private=text))) for text in ("YQ==", "Yg=="))

    for hide in (True, False):
        (found,) = msgspec.json.decode(difference(before, after, hide=hide).resources)
        assert found["metadata"] == [{"field": "private", "before": MASK, "after": MASK}]


def test_the_results_of_checks(backend: Backend) -> None:
    for name in ("before", "after"):
        document = (CASES / f"03-checks-only/{name}.tfstate").read_bytes()
        assert backend.push(document).status_code == 200

    diff = backend.look("/versions/2/diff").json()["diff"]

    assert diff["summary"]["check_results"] == {"added": 0, "changed": 1, "removed": 0}
    assert (diff["outputs"], diff["resources"], diff["metadata"]) == ([], [], [])
    assert diff["check_results"] == [
        {
            "object": "check.health",
            "object_kind": "check",
            "action": "CHANGED",
            "before": "pass",
            "after": "fail",
            "failure_messages": {"before": [], "after": ["shop.example answered 503"]},
        }
    ]
    client = person("viewer")
    root = f"/admin/states/state/{backend.record.pk}"
    shown = text_of(client.get(f"{root}/compare/", {"before": 1, "after": 2}))
    assert "check of check.health" in shown
    assert "shop.example answered 503" in shown
    assert "checks only" in text_of(client.get(f"{root}/change/"))


def test_a_block_that_contradicts_its_object_is_a_change() -> None:
    def checks(status: str) -> list[Any]:
        objects = [{"object_addr": "check.a", "status": "pass"}]
        block = {"object_kind": "check", "config_addr": "check.a", "status": status}
        return [{**block, "objects": objects}]

    page = difference(state(check_results=checks("pass")), state(check_results=checks("error")))

    (found,) = msgspec.json.decode(page.check_results)
    assert (found["object"], found["before"], found["after"]) == ("check.a", "pass", "pass")


def test_a_secret_in_a_message_is_hidden() -> None:
    secret = "correct-horse-battery"
    thing = resource("x", instance({"p": secret}, path("p")))
    checks = [
        {
            "object_kind": "output", "config_addr": "output.a", "status": "fail",
            "objects": [{"object_addr": "output.a", "failure_messages": [f"not {secret}"]}],
        }
    ]  # fmt: skip
    page = difference(state(thing), state(thing, check_results=checks))

    (found,) = msgspec.json.decode(page.check_results)
    assert (found["action"], found["before"]) == ("ADDED", None)
    assert found["failure_messages"] == {"before": [], "after": [MASK]}


def test_pages_go_through_all_kinds(backend: Backend) -> None:
    outputs = {name: {"value": 1, "type": "number"} for name in "ab"}
    things = [resource(name, instance()) for name in "cde"]
    checks = [{"object_kind": "check", "config_addr": f"check.{n}"} for n in range(4)]
    backend.push(state())
    backend.push(state(*things, outputs=outputs, check_results=checks).replace(
        b'"serial": 1', b'"serial": 2'
    ))  # fmt: skip
    whole = backend.look("/versions/2/diff").json()["diff"]

    kinds = ("outputs", "resources", "check_results")
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    sizes, token = [], ""
    while token or not sizes:
        page = backend.look(f"/versions/2/diff?page_size=2&page_token={token}").json()
        for kind in kinds:
            found[kind] += page["diff"][kind]
        sizes.append(sum(len(page["diff"][kind]) for kind in kinds))
        token = page["next_page_token"]

    assert found == {kind: whole[kind] for kind in kinds}
    assert sizes == [2, 2, 2, 2, 1]


def test_other_terraform_version_is_a_difference(backend: Backend) -> None:
    for serial, version in enumerate(("1.11.4", "1.12.0"), start=1):
        document = json.loads(state(resource("x", instance())))
        body = {**document, "serial": serial, "terraform_version": version}
        backend.push(json.dumps(body).encode())

    diff = backend.look("/versions/2/diff").json()["diff"]

    assert diff["metadata"] == [
        {"field": "terraform_version", "before": "1.11.4", "after": "1.12.0"}
    ]
    assert diff["resources"] == []
    assert backend.look("/versions/1/diff").json()["diff"]["metadata"] == []
    client = person("viewer")
    root = f"/admin/states/state/{backend.record.pk}"
    shown = text_of(client.get(f"{root}/compare/", {"before": 1, "after": 2}))
    assert "Terraform version: 1.11.4 before, 1.12.0 after." in shown
    assert "Only the Terraform version differs." in shown
    assert "Terraform version only" in text_of(client.get(f"{root}/change/"))
