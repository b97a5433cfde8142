"""Reading state format 4."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from msgspec import Raw

from states.document import format4
from states.document.address_text import quoted
from states.document.hidden import encode
from states.document.work_limit import Effort
from states.errors import StateEncrypted, StateFormatUnsupported
from tests.states.samples import AFTER, ENCRYPTED, instance, resource, state


def parse(document: bytes) -> format4.Document:
    return format4.parse(document, Effort(len(document)))


def test_recorded_state_is_read() -> None:
    found = [(r.address(i), i.deposed, i.status) for r, i in parse(AFTER).instances()]

    assert found == [
        ("data.terraform_remote_state.self", None, None),
        ("terraform_data.counted[0]", None, None),
        ("terraform_data.counted[1]", None, "tainted"),
        ("terraform_data.dependent", None, "tainted"),
        ("terraform_data.plain", None, None),
        ("terraform_data.replaced", None, None),
        ("terraform_data.replaced", found[6][1], None),
        ("terraform_data.secret", None, None),
        ('module.app["ap"].terraform_data.node[0]', None, None),
        ('module.app["ap"].terraform_data.node[1]', None, None),
        ('module.app["ap"].module.disk.terraform_data.disk["a b"]', None, None),
        ('module.app["ap"].module.disk.terraform_data.disk["c\\"d"]', None, None),
        ('module.app["eu"].terraform_data.node[0]', None, None),
        ('module.app["eu"].terraform_data.node[1]', None, None),
        ('module.app["eu"].module.disk.terraform_data.disk["a b"]', None, None),
        ('module.app["eu"].module.disk.terraform_data.disk["c\\"d"]', None, None),
    ]
    assert found[6][1]


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("line\nnext\r\t", '"line\\nnext\\r\\t"'),
        ("${x} %{y} $z", '"$${x} %%{y} $z"'),
    ],
)
def test_keys_are_written_as_terraform_writes_them(text: str, literal: str) -> None:
    assert quoted(text) == literal


def test_empty_document_is_read() -> None:
    document = parse(b'{"version":4,"outputs":null,"resources":null}')

    assert (document.outputs, list(document.instances())) == (None, [])


def test_flat_attributes_of_old_states_are_read() -> None:
    flat = instance(attributes_flat={"id": "1", "tags.%": "0"})
    del flat["attributes"]

    ((_, found),) = parse(state(resource("x", flat))).instances()

    assert format4.decode(found.values, Effort(0)) == {"id": "1", "tags.%": "0"}


def test_numbers_keep_their_digits() -> None:
    text = b"[0.1234567890123456789012345,12345678901234567890123456789,1.50]"

    value = format4.decode(Raw(text), Effort(0))

    assert value[0] == decimal.Decimal("0.1234567890123456789012345")
    assert bytes(encode(value)) == text


def test_encrypted_state_raises_an_error() -> None:
    with pytest.raises(StateEncrypted):
        parse(ENCRYPTED)


@pytest.mark.parametrize(
    ("document", "problem", "version"),
    [
        (b"{}", "its format version is null", "null"),
        (b'{"version":5}', "its format version is 5", "5"),
        (b'{"version":"4"}', 'its format version is "4"', '"4"'),
        (b'{"version":4,"resources":{}}', "Expected `array | null`", "4"),
        (b'{"version":4,"resources":[{"mode":"managed"}]}', "missing required field", "4"),
        (b"[]", "Expected `object`", "4"),
        (b'{"version":4,"outputs":{"\\ud800":{}}}', "hex escape", "4"),
    ],
)
def test_anything_else_is_unsupported(document: bytes, problem: str, version: str) -> None:
    with pytest.raises(StateFormatUnsupported, match=problem) as caught:
        parse(document)

    assert caught.value.metadata == {"format_version": version}
    assert caught.value.rpc_status == "FAILED_PRECONDITION"


@pytest.mark.parametrize("text", [b"[" * 5000 + b"]" * 5000, b'"\\ud800"'])
def test_unreadable_values_are_refused(text: bytes) -> None:
    with pytest.raises(StateFormatUnsupported):
        format4.decode(Raw(text), Effort(0))


def test_invalid_dependencies_are_rejected() -> None:
    ((_, found),) = parse(state(resource("x", instance(dependencies={"a": "b"})))).instances()

    with pytest.raises(StateFormatUnsupported):
        format4.dependencies(found.dependencies, Effort(0))


def test_large_states_are_not_built() -> None:
    """Attributes stay slices of the document, whatever is in them."""
    attributes: dict[str, Any] = {"list": list(range(1000))}
    document = state(resource("x", instance(attributes)))

    ((_, found),) = parse(document).instances()

    assert isinstance(found.attributes, Raw)
