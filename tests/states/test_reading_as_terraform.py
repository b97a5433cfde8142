"""Documents are read as Terraform reads them: null members, keys, and the text of addresses."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from states.document import format4
from states.document.address_text import quoted
from states.document.work_limit import Effort
from states.errors import StateFormatUnsupported
from tests.conftest import ApiClient
from tests.e2e.terraform import BINARY
from tests.states.conftest import Backend
from tests.states.indexed import addresses, index
from tests.states.samples import instance, resource, state
from tests.support.people import person, text_of

CASES = Path(__file__).parent / "fixtures" / "cases"
#: As ``terraform state list`` prints the keys of case 04.
PRINTED = (
    r"a\u0001b", r"a\u007fb", r"a\u00a0b", r"a\u00adb", r"a\u0378b", r"a\u200bb", r"a\u2028b",
    r"a\ue000b", r"a\U000e0001b", r"\u202eabc", r"\ufeffx",
)  # fmt: skip
TERRAFORM = 'provider["terraform.io/builtin/terraform"]'
#: Numbers as keys, with the integer that Terraform makes of each.
NUMBERS = {
    "1.0": 1, "1e0": 1, "2.9": 2, "-1": -1, "-1.5": -1, "-0.0": 0, "0.9": 0, "1e2": 100,
    "9007199254740993": 9007199254740992, "1e300": -(2**63), "9223372036854775807": -(2**63),
}  # fmt: skip
#: Members of an instance that may be null.
MEMBERS = (
    "index_key", "status", "deposed", "schema_version", "attributes", "attributes_flat",
    "sensitive_attributes", "identity_schema_version", "identity", "private", "dependencies",
    "depends_on", "create_before_destroy", "skip_destroy", "provider",
)  # fmt: skip


def parse(document: bytes) -> format4.Document:
    return format4.parse(document, Effort(len(document)))


def listed(document: bytes) -> list[str]:
    return sorted(found.address(one) for found, one in parse(document).instances())


def printed(document: bytes, directory: Path) -> list[str]:
    """Return the addresses that the real Terraform lists."""
    file = directory / "terraform.tfstate"
    file.write_bytes(document)
    done = subprocess.run(
        [str(BINARY), "state", "list", f"-state={file}"],
        env={"PATH": os.environ["PATH"], "TF_CLI_CONFIG_FILE": os.devnull},
        capture_output=True,
        check=True,
    )
    return sorted(done.stdout.decode().splitlines())


def odd_document() -> bytes:
    """Return a document with null or an odd number in every place where Terraform accepts it."""
    written = {"mode": "managed", "type": "terraform_data", "provider": TERRAFORM}
    things = [
        {**written, "name": f"of_{member}", "instances": [{member: None}]} for member in MEMBERS
    ]
    things += [
        {**written, "name": "null_instance", "instances": [None]},
        {**written, "name": "null_path", "instances": [{"sensitive_attributes": [None]}]},
        {**written, "name": "null_instances", "instances": None},
        {**written, "name": "no_instances"},
        {**written, "name": "null_module", "module": None, "each": None, "instances": [{}]},
        {**written, "name": None, "instances": [{}]},
        {**written, "name": "null_type", "type": None, "instances": [{}]},
        {**written, "name": "module", "module": 'module.a["x\u00a0y"]', "instances": [{}]},
        {**written, "name": "printed", "module": 'module.a["x\\u00a0y"]', "instances": [{}]},
        *({**written, "name": f"n{n}", "instances": [{"index_key": f"@{number}@"}]}
          for n, number in enumerate(NUMBERS)),
        *({**written, "name": f"t{n}", "instances": [{"index_key": text}]}
          for n, text in enumerate(("", " ", "${a}%{b}", "$${c", "é", "\u3000", "\u200d", "\0",
                                    "\U0001f600", "a\u0301", 'q"\\\n\r\t', "\u2066",
                                    "\uffff"))),
    ]  # fmt: skip
    head = {"version": 4, "terraform_version": None, "serial": None, "lineage": None}
    rest = {"outputs": None, "check_results": None, "resources": things}
    return json.dumps({**head, **rest}).replace('"@', "").replace('@"', "").encode()


@pytest.mark.skipif(BINARY is None, reason="terraform is not installed")
@pytest.mark.parametrize(
    "document",
    [odd_document(), *(file.read_bytes() for file in sorted(CASES.rglob("*.tfstate")))],
)
def test_addresses_are_those_of_terraform(document: bytes, tmp_path: Path) -> None:
    assert listed(document) == printed(document, tmp_path)


def test_unprintable_keys_are_escaped() -> None:
    document = (CASES / "04-keys-that-do-not-print.tfstate").read_bytes()

    assert sorted(listed(document)) == sorted(f'terraform_data.a["{key}"]' for key in PRINTED)


@pytest.mark.parametrize(("number", "key"), NUMBERS.items())
def test_a_key_is_any_number(number: str, key: int) -> None:
    document = state(resource("x", instance(index_key="@"))).replace(b'"@"', number.encode())

    assert listed(document) == [f"thing.x[{key}]"]


@pytest.mark.parametrize("key", [b"1e400", b"true", b"{}", b"[1]", b"9" * 400])
def test_invalid_key_is_refused(key: bytes) -> None:
    document = state(resource("x", instance(index_key="@"))).replace(b'"@"', key)

    with pytest.raises(StateFormatUnsupported):
        parse(document)


@pytest.mark.parametrize(
    "thing",
    [
        None,
        resource("x", mode=None),
        resource("x", instance(dependencies=[None])),
        resource("x", instance(sensitive_attributes=[[None]])),
    ],
)
def test_invalid_null_is_refused(backend: Backend, thing: Any) -> None:
    backend.push(state(thing))

    assert backend.look("/resources").status_code == 400


@pytest.mark.parametrize(
    "name", [file.name for file in sorted((CASES / "05-null-members").iterdir())]
)
def test_a_null_member_is_absent(backend: Backend, seeing: Backend, name: str) -> None:
    document = (CASES / "05-null-members" / name).read_bytes()
    lineage = json.loads(document)["lineage"]
    backend.push(state(lineage=lineage))
    assert backend.push(document.replace(b'"serial": 1', b'"serial": 2')).status_code == 200

    for client in (backend, seeing):
        for part in ("resources", "outputs", "versions/2/diff"):
            assert client.look(f"/{part}").status_code == 200
    (done,) = index()
    assert (done.problem, addresses()) == ("", listed(document))


def test_null_members_are_accepted(backend: Backend) -> None:
    backend.push(odd_document())

    found = backend.look("/resources?page_size=100").json()["resources"]

    assert len(found) == len(listed(odd_document()))
    assert found[0] == {
        "address": "terraform_data.of_index_key", "deposed": None, "module": None,
        "mode": "managed", "type": "terraform_data", "name": "of_index_key", "index_key": None,
        "provider": TERRAFORM, "status": None, "schema_version": 0,
        "create_before_destroy": False, "dependencies": [], "sensitive_attributes": [],
        "attributes": None, "hidden": None,
    }  # fmt: skip
    # The empty path marks all of the attributes, as an empty list of steps does.
    marked = instance(attributes={"a": "b"})
    marked["sensitive_attributes"] = [None]
    assert backend.push(state(resource("x", marked), serial=9)).status_code == 200
    (hidden,) = backend.look("/resources").json()["resources"]
    assert hidden["attributes"] == "(sensitive value)"


def test_output_of_nulls_is_accepted(backend: Backend) -> None:
    output = {"value": None, "type": None, "sensitive": None, "deprecated": None}
    backend.push(state(outputs={"a": output}))

    assert backend.look("/outputs").json()["outputs"] == [
        {"name": "a", "value": None, "type": None, "sensitive": False, "hidden": None}
    ]


def test_a_count_key_as_a_float(backend: Backend, reader: ApiClient) -> None:
    backend.push((CASES / "06-count-key-as-float.tfstate").read_bytes())

    (found,) = backend.look("/resources").json()["resources"]
    assert (found["address"], found["index_key"]) == ("terraform_data.a[1]", 1)
    index()
    (entry,) = reader.items("/api/v1/resources", "resources")
    assert (entry["address"], entry["index_key"]) == ("terraform_data.a[1]", 1)


@pytest.mark.parametrize("key", PRINTED)
def test_an_address_is_found_as_it_is_printed(
    backend: Backend, reader: ApiClient, key: str
) -> None:
    document = (CASES / "04-keys-that-do-not-print.tfstate").read_bytes()
    backend.push(document)
    index()
    address = f'terraform_data.a["{key}"]'

    (found,) = reader.items(
        "/api/v1/resources", "resources", filter=f"field['address'] = '{address}'"
    )

    assert found["address"] == address
    # The key itself is a value of the document.
    assert quoted(found["index_key"]) == f'"{key}"'
    assert address in [one["address"] for one in backend.look("/resources").json()["resources"]]
    backend.push(state(serial=2, lineage=json.loads(document)["lineage"]))
    changes = backend.look("/versions/2/diff").json()["diff"]["resources"]
    assert (address, "REMOVED") in [(one["address"], one["action"]) for one in changes]
    pages = person("viewer")
    search = pages.get("/admin/states/resourceentry/", {"q": address})
    assert text_of(search).count(address) >= 1


@pytest.mark.slow
def test_no_page_has_a_character_that_reorders_text_or_has_no_width(backend: Backend) -> None:
    invisible = (0xAD, 0x200B, *range(0x2060, 0x2065), 0xFEFF)
    reordering = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *invisible)))
    escapes = "".join(f"\\u{ord(character):04x}" for character in reordering)
    thing = resource(
        "x" + reordering,
        instance({"a" + reordering: reordering}, index_key=reordering),
        module=f'module.m["{reordering}"]',
        type="t" + reordering,
        provider=reordering,
    )
    outputs = {"o" + reordering: {"value": reordering, "type": "string"}}
    checks = [{"object_kind": "check", "config_addr": "check." + reordering, "status": "pass"}]
    first = state(thing, outputs=outputs, check_results=checks)
    backend.push(first)
    backend.push(state(serial=2))
    record = backend.record
    type(record.component).objects.update(name="c" + reordering)
    type(record.environment).objects.update(name="e" + reordering)
    index()
    backend.push(json.dumps({**json.loads(first), "serial": 3}).encode())
    index()

    root = f"/admin/states/state/{record.pk}"
    pages = [
        "/admin/", "/admin/states/state/", "/admin/states/resourceentry/",
        "/admin/states/component/", "/admin/states/environment/",
        f"/admin/states/component/{record.component_id}/change/",
        f"{root}/change/", f"{root}/versions/1/contents/", f"{root}/compare/?before=1&after=2",
    ]  # fmt: skip
    client = person("administrator")
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
        shown = answer.content.decode().replace("<wbr>", "")
        assert not set(reordering) & set(shown), page
        assert page == "/admin/" or escapes in shown, page

    # A document stays as it was pushed, byte for byte.
    assert backend.get().content == json.dumps({**json.loads(first), "serial": 3}).encode()


def test_a_key_that_no_column_takes_is_named(backend: Backend) -> None:
    backend.push(state(resource("x", instance(index_key="a\0b"))))

    (done,) = index()

    assert done.problem == "NAMES_TOO_LONG"
    assert backend.look("/resources").json()["resources"][0]["address"] == r'thing.x["a\u0000b"]'


def test_provider_of_each_instance_is_read(backend: Backend, reader: ApiClient) -> None:
    document = (CASES / "11-provider-per-instance.json").read_bytes()
    backend.push(document)
    index()

    name = "registry.example/hashicorp/aws"
    configured = [f'provider["{name}"].by_region["{region}"]' for region in ("eu", "us")]
    found = backend.look("/resources").json()["resources"]
    assert [one["provider"] for one in found] == configured
    assert reader.items("/api/v1/providers", "providers") == [
        {"provider": name, "states": 1, "resources": 2, "data_sources": 0}
    ]
    listed_ = reader.items("/api/v1/resources", "resources", filter=f"field['provider'] = '{name}'")
    assert [one["index_key"] for one in listed_] == ["eu", "us"]
    moved = document.replace(b'by_region[\\"us\\"]', b'by_region[\\"eu\\"]')
    backend.push(moved.replace(b'"serial": 1', b'"serial": 2'))
    (change,) = backend.look("/versions/2/diff").json()["diff"]["resources"]
    assert change["metadata"] == [
        {"field": "provider", "before": configured[1], "after": configured[0]}
    ]


def test_provider_of_an_instance_overrides_the_block() -> None:
    block = resource("x", instance(provider="own"), instance(provider=None), instance(provider=""))
    document = parse(state(block))

    providers = [found.provider_of(one) for found, one in document.instances()]
    assert providers == ["own", *['provider["example.org/x/y"]'] * 2]


def test_a_raw_null_has_no_addresses() -> None:
    assert format4.dependencies(Raw(b"null"), Effort(0)) == []
