"""Copies of values that a state marks sensitive, in each answer that shows values."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.document import contents, sealing
from states.document.contents import LoadedDocument
from states.document.hidden import MASK
from states.document.secret_rule import Reach, reach
from states.document.value_names import Name
from states.models import State
from states.resources import indexing
from states.resources.digests import digest
from states.resources.extraction import find_contents
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import Backend
from tests.states.generated import generated
from tests.states.indexed import due, found, index
from tests.states.samples import instance, path, resource, state

CASE = (Path(__file__).parent / "fixtures/region-in-sensitive-output.tfstate").read_bytes()
PASSWORD = "tr0ub4dor-and-three"


def output(value: Any, *, sensitive: bool = False) -> dict[str, Any]:
    return {"value": value, "type": "dynamic", **({"sensitive": True} if sensitive else {})}


def outputs_document(document: bytes) -> dict[str, Any]:
    gzipped = contents.outputs_document(sealing.compress(document), hide=True)
    found: dict[str, Any] = json.loads(sealing.decompress(gzipped))["outputs"]
    return found


def shown(document: bytes) -> dict[str, dict[str, Any]]:
    """Return the outputs as they are shown without ``state:secrets``, by name."""
    page = contents.outputs(sealing.compress(document), start=0, size=1000, hide=True)
    return {one["name"]: one for one in msgspec.json.decode(page.items)}


def hidden_names(*, sensitive: dict[str, Any], plain: dict[str, Any]) -> set[str]:
    """Return the plain outputs that are hidden because of these sensitive outputs."""
    marked = {name: output(value, sensitive=True) for name, value in sensitive.items()}
    outputs = {**marked, **{name: output(value) for name, value in plain.items()}}
    found = {name for name, one in shown(state(outputs=outputs)).items() if one["hidden"]}
    assert marked.keys() <= found
    assert outputs_document(state(outputs=outputs)).keys() == outputs.keys() - found
    return found - marked.keys()


class TestRegionInASensitiveOutput:
    def test_every_reader_masks_copies(self, backend: Backend, client_with: ClientWith) -> None:
        backend.push(CASE)
        index()
        reader = client_with("state:read", "state:outputs")

        for value in ("arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-0shop",
                      "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs"):  # fmt: skip
            assert len(self.find(reader, value)) == 1
        outputs = backend.look("/outputs").json()["outputs"]
        assert {one["name"]: one["hidden"] and one["hidden"]["reason"] for one in outputs} == {
            "bucket_arn": None, "connection": "MARKED_SENSITIVE", "db_port": None, "vpc_arn": None,
        }  # fmt: skip
        document = reader.get(f"{backend.root}/outputs.tfstate").json()
        assert document["outputs"].keys() == {"bucket_arn", "db_port", "vpc_arn"}
        assert MASK not in backend.look("/resources").content.decode()

    def find(self, client: ApiClient, value: str) -> list[Any]:
        answer = client.send("POST", "/api/v1/resources:find", {"value": value})
        found: list[Any] = answer.json()["resources"]
        return found

    def test_it_is_read_again_after_an_upgrade(self, backend: Backend) -> None:
        backend.push(CASE)
        index()
        State.objects.update(index_key="4." + indexing.stamp().partition(".")[2])

        indexing.mark_for_indexing()

        assert due() == [backend.record.pk]
        index()
        assert found("arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-0shop") == ["aws_vpc.main"]

    def test_password_equal_to_the_region_is_masked(
        self, backend: Backend, client_with: ClientWith
    ) -> None:
        body = json.loads(CASE)
        url = f"postgres://app:{PASSWORD}@db.shop.example:5432/shop"
        body["outputs"]["connection"]["value"]["password"] = PASSWORD
        body["outputs"]["url"] = {"value": url, "type": "string"}
        attributes = body["resources"][0]["instances"][0]["attributes"]
        attributes |= {"name": url, "self_link": PASSWORD}
        backend.push(json.dumps(body).encode())
        index()
        reader = client_with("state:read", "state:outputs")

        by_name = {one["name"]: one for one in backend.look("/outputs").json()["outputs"]}
        assert by_name["url"]["value"] == MASK
        assert by_name["url"]["hidden"] == {
            "reason": "CONTAINS_SENSITIVE_VALUE", "output": "connection", "attribute": None,
        }  # fmt: skip
        document = reader.get(f"{backend.root}/outputs.tfstate").json()
        assert document["outputs"].keys() == {"bucket_arn", "db_port", "vpc_arn"}
        # A search does not distinguish hidden values from absent values.
        hit, hidden, absent = (
            reader.send("POST", "/api/v1/resources:find", {"value": value}).json()
            for value in (attributes["arn"], PASSWORD, "tr0ub4dor-and-four")
        )
        assert len(hit["resources"]) == 1
        assert hidden == absent == {"resources": [], "next_page_token": ""}
        assert found(url) == []
        (vpc, _queue) = backend.look("/resources").json()["resources"]
        assert vpc["attributes"]["name"] == vpc["attributes"]["self_link"] == MASK
        assert vpc["attributes"]["arn"] == attributes["arn"]
        assert vpc["hidden"]["output"] == "connection"


def test_the_reason_names_an_attribute() -> None:
    document = state(
        resource("db", instance({"login": {"password": PASSWORD}}, path("login", "password"))),
        resource("app", instance({"url": f"x://u:{PASSWORD}@h", "id": "i-1"})),
        outputs={"url": output(f"x://u:{PASSWORD}@h"), "odd": output("%" + "25" * 50 + "41")},
    )

    by_name = shown(document)
    page = contents.resources(sealing.compress(document), start=0, size=10, hide=True)
    db, app = msgspec.json.decode(page.items)

    expected = {
        "reason": "CONTAINS_SENSITIVE_VALUE", "output": None,
        "attribute": "thing.db.login.password",
    }  # fmt: skip
    assert by_name["url"]["hidden"] == app["hidden"] == expected
    assert by_name["odd"]["hidden"]["reason"] == "TOO_MANY_ESCAPES"
    assert db["hidden"] is None
    everything = contents.resources(sealing.compress(document), start=0, size=10, hide=False)
    assert [one["hidden"] for one in msgspec.json.decode(everything.items)] == [None, None]


def test_a_reason_is_short_however_long_the_name_is() -> None:
    long = "n" * 100_000
    document = state(outputs={long: output(PASSWORD, sensitive=True), "copy": output(PASSWORD)})

    assert shown(document)["copy"]["hidden"]["output"] == long[:500]


@pytest.mark.parametrize(
    "sensitive",
    [
        {"region": "eu-west-1"},
        {"port": 5432},
        {"port": "5432"},
        {"flag": True},
        {"flag": False},
        {"nothing": None},
        {"nothing": ""},
        {"connection": {"host": "db.shop.example", "port": 15433, "user": "app", "name": "shop"}},
        {"settings": {"enabled": True, "none": None, "text": "", "list": [], "map": {}}},
        {"regions": ["eu-west-1", "eu-central-1"]},
        {"azure": {"client_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "client_secret": "xyz"}},
        {"credentials": {"user": "payments", "database": "orders"}},
        {"encoded": {"json": '{"region": "eu-west-1", "port": 5432, "host": "db.shop.example"}'}},
        {"account_id": "111122223333"},
        {"zones": {"a": {"zone": "eu-west-1a"}, "b": {"zone": "eu-west-1b"}}},
        {"cidrs": ["0.0.0.0/0", "10.0.0.0/16"]},
        # The value in the JSON text is a member, although the text resembles a dynamic value.
        {"encoded": '{"value": "payments", "type": "string"}'},
    ],
)
def test_public_values_are_not_masked(sensitive: dict[str, Any]) -> None:
    plain = {
        "arn": "arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-0shop",
        "port_": 5432, "ports": [15433, "15433"], "flag_": True, "off": False, "nothing_": None,
        "host": "https://db.shop.example/orders", "user": "app", "name": "payments", "empty": "",
        "client": "/subscriptions/f81d4fae-7dec-11d0-a765-00a0c91e6bf6/resourceGroups/shop",
        "regions_": ["eu-west-1", "eu-central-1"], "open": ["0.0.0.0/0", "10.0.0.0/16"],
        "zone": "eu-west-1a",
    }  # fmt: skip

    assert hidden_names(sensitive=sensitive, plain=plain) == set()


@pytest.mark.parametrize(
    ("sensitive", "copy"),
    [
        ({"db": {"region": "eu-west-1", "password": "hunter2"}}, "postgres://a:hunter2@db/x"),
        ({"db": {"password": "hunter2"}}, "postgres%3A%2F%2Fa%3Ahunter2%40db"),
        ({"db": {"password": "hunter2"}}, base64.b64encode(b"a:hunter2").decode()),
        ({"db": {"token": "hunter2"}}, {"a": ["hunter2"]}),
        ({"passwords": {"ann": "hunter2"}}, "hunter2"),
        ({"passwords": ["hunter2"]}, "x hunter2"),
        ({"secret": ["hunter2"]}, "x hunter2"),
        ({"db_password": "hunter2"}, "x hunter2"),
        ({"json": '{"port": 5432, "password": "hunter2"}'}, "x hunter2"),
        ({"db": {"json": '{"port": 5432, "password": "hunter2"}'}}, "x hunter2"),
        ({"db": {"url": "postgres://a:hunter2@db/x"}}, "see postgres://a:hunter2@db/x"),
        ({"list": ["9f86d081884c7d659a2feaa0c55ad015"]}, "x-9f86d081884c7d659a2feaa0c55ad015"),
        ({"value": {"value": "hunter2hunter2", "type": "string"}}, "x hunter2hunter2"),
        ({"db": {"key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n"}},
         "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"),
        ({"db": {"pin": 4711}}, [4711]),
        ({"mark": "-abc-"}, "-abc-"),
        ({"pair": {"user": "ann", "note": "abc"}}, {"user": "ann", "note": "abc"}),
    ],
)  # fmt: skip
def test_secrets_are_still_hidden(sensitive: dict[str, Any], copy: Any) -> None:
    assert hidden_names(sensitive=sensitive, plain={"copy": copy, "open": "x"}) == {"copy"}


@pytest.mark.parametrize(
    ("sensitive", "equal", "containing"),
    [
        # The entropy is too low.
        ({"password": "aaaabbbb"}, "aaaabbbb", "x aaaabbbb"),
        ({"mark": "83920174"}, 83920174, "x 83920174"),
        # The text hides equal numbers, but no texts that contain the number.
        ({"password": "0083920174"}, 83920174, "x 83920174"),
        ({"password": "abcd"}, "postgres://app:abcd@db/shop", "postgres://app:abcde@db/shop"),
    ],
)
def test_value_hides_only_equal_values(
    sensitive: dict[str, Any], equal: Any, containing: str
) -> None:
    plain = {"equal": equal, "containing": containing}

    assert hidden_names(sensitive=sensitive, plain=plain) == {"equal"}


def test_json_text_is_a_secret_only_by_its_own_mark() -> None:
    text = '{"region": "eu-west-1", "port": 5432}'
    plain = {"copy": text, "containing": f"x {text}"}

    assert hidden_names(sensitive={"settings": text}, plain=plain) == plain.keys()
    assert hidden_names(sensitive={"settings": [text]}, plain=plain) == set()


def test_password_of_three_characters_hides_no_connection_string() -> None:
    plain = {"url": "postgres://app:abc@db/shop"}

    assert hidden_names(sensitive={"password": "abc"}, plain=plain) == set()


KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: prod-eu
  cluster:
    server: https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM2akNDQWRLZ0F3SUJBZ0lCQURB
users:
- name: admin
  user:
    token: hunter2
"""


@pytest.mark.parametrize(
    "copy",
    [
        "postgres://alice:Sommer2024!@db.shop.example/app",
        "postgres://alice:Sommer2024%21@db.shop.example/app",
        "host=db user=alice password='Sommer2024!' sslmode=require",
        "Server=db;User Id=alice;Password=Sommer2024!;Encrypt=true",
    ],
)
def test_the_password_of_a_connection_string_is_a_secret_by_its_place(copy: str) -> None:
    sensitive = {"logins": {"alice": "Sommer2024!", "region": "eu-west-1"}}
    other = "postgres://alice:eu-west-1@db.shop.example/app"

    assert hidden_names(sensitive=sensitive, plain={"a": copy, "b": other}) == {"a"}


def test_passwords_are_compared_in_connection_strings_of_at_most_4096_characters() -> None:
    longest = "postgres://alice:Sommer2024!@db/".ljust(4096, "x")
    plain = {"longest": longest, "too_long": longest + "x"}

    found = hidden_names(sensitive={"logins": {"alice": "Sommer2024!"}}, plain=plain)

    assert found == {"longest"}


def test_line_of_a_text_does_not_unmask_a_member_of_another() -> None:
    phrase = "correct horse battery staple zebra"
    lines = {"aaa": f"hello\n{phrase}\nbye now"}
    plain = {"copy": f"it is {phrase}"}

    assert hidden_names(sensitive={"items": [phrase]}, plain=plain) == {"copy"}
    assert hidden_names(sensitive={**lines, "items": [phrase]}, plain=plain) == {"copy"}


@pytest.mark.parametrize("name", ["kubeconfig", "settings", "secret"])
def test_a_file_hides_its_secrets_and_not_its_words(name: str) -> None:
    plain = {
        "manifest": "apiVersion: v1\nkind: Config\n",
        "endpoint": "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com",
        "name_": "prod-eu",
        "header": "Bearer hunter2",
        "ca": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM2akNDQWRLZ0F3SUJBZ0lCQURB",
    }

    assert hidden_names(sensitive={name: KUBECONFIG}, plain=plain) == {"header", "ca"}


@pytest.mark.parametrize(
    "text",
    [
        "A=1\nexport DB_PASSWORD='hunter2'\n",
        "user = app\ndb.password = hunter2",
        "x:\n  pwd: hunter2,",
    ],
)
def test_a_name_in_a_line_counts(text: str) -> None:
    plain = {"url": "x://a:hunter2@h", "user": "app", "word": "export"}

    assert hidden_names(sensitive={"file": {"content": text}}, plain=plain) == {"url"}


def test_a_name_in_a_line_describes_only_its_value() -> None:
    lines = "password: payments-host\nuser: shop-token\napt-get install -y nginx curl\n"
    plain = {
        "secret": "x payments-host",
        "user": "x shop-token",
        "command": "run apt-get install -y nginx curl",
    }

    assert hidden_names(sensitive={"file": {"content": lines}}, plain=plain) == {"secret"}


VOCABULARY = st.sampled_from([
    "eu-west-1", "us-east-1a", "europe-west1-b", "westeurope", 5432, "5432", 443, 3306, "admin",
    "postgres", "db.shop.example", "10.0.0.0/16", True, False, None, "", 0, 1, "prod", "app",
    "vpc-0a1b2c3d4e5f67890", "111122223333", "arn:aws:s3:::shop", "1.11.4", "db.r6g.large",
])  # fmt: skip
NAMES = st.sampled_from(["host", "port", "region", "user", "name", "zone", "settings", "a", "k 1"])


def composites(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return lists and maps of these, some of them as JSON in a text."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(NAMES, inner, max_size=4)
            | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(json.dumps)
        ),
        max_leaves=8,
    )


def written(value: Any) -> list[str]:
    """Return texts that contain the value: an ARN, an address, JSON, base64."""
    text = value if isinstance(value, str) else json.dumps(value)
    return [
        f"arn:aws:sqs:{text}:jobs", f"https://{text}.example/x", json.dumps({"a": text}),
        quote(text, safe=""), base64.b64encode(f"x:{text}".encode()).decode(), text,
    ]  # fmt: skip


@pytest.mark.slow
@given(marked=composites(VOCABULARY).map(lambda value: [value]), other=VOCABULARY)
def test_planted_vocabulary_never_hides(marked: Any, other: Any) -> None:
    names = [*written("eu-west-1"), *written(5432), *written(other)]
    document = state(
        resource("db", instance({"settings": marked}, path("settings"))),
        *(resource(f"n{i}", instance({"id": name})) for i, name in enumerate(names)),
        outputs={
            "marked": output(marked, sensitive=True),
            **{f"o{i}": output(name) for i, name in enumerate(names)},
            "value": output(other),
        },
    )

    assert {name for name, one in shown(document).items() if one["hidden"]} == {"marked"}
    indexed = find_contents(LoadedDocument(sealing.compress(document))).resources
    assert [one.digests for one in indexed[1:]] == [
        frozenset([digest(name)] if name else []) for name in names
    ]


@st.composite
def planted(draw: Any) -> tuple[Any, str]:
    """A composite of vocabulary with a generated secret somewhere in it, and the secret."""
    secret = draw(generated())
    around = draw(composites(VOCABULARY))
    name = draw(st.sampled_from(["password", "token", "value", "primary", "k 1", "api_key"]))
    holders: list[Any] = [
        {name: secret, "region": around},
        [around, secret],
        {"deep": [{name: secret}]},
        json.dumps({name: secret, "port": 5432}),
    ]
    # The rule recognizes almost all generated lines; see test_secret_rule.
    if reach(secret, Name.NEUTRAL, is_member=True, is_line=True) is Reach.CONTAINING:
        holders.append({"file": f"region\n{secret}\nend"})
    return draw(st.sampled_from(holders)), secret


@pytest.mark.slow
@given(planted(), st.booleans())
def test_planted_secrets_are_masked(case: tuple[Any, str], in_output: bool) -> None:
    marked, secret = case
    copies = [*written(secret), secret + "\nmore", [secret], {"a": {secret: 1}}]
    plain = {f"o{i}": output(copy) for i, copy in enumerate(copies)}
    texts = [copy for copy in copies if isinstance(copy, str)]
    things = [resource(f"n{i}", instance({"id": text}, identity={"x": text}))
              for i, text in enumerate(texts)]  # fmt: skip
    if in_output:
        plain["marked"] = output(marked, sensitive=True)
    else:
        things.append(resource("marked", instance({"settings": marked}, path("settings"))))
    gzipped = sealing.compress(state(*things, outputs=plain))

    answers = [
        contents.outputs(gzipped, start=0, size=100, hide=True).items,
        contents.resources(gzipped, start=0, size=100, hide=True).items,
        contents.overview(gzipped, size=100, hide=True).outputs.items,
        sealing.decompress(contents.outputs_document(gzipped, hide=True)),
    ]
    page = contents.diff(sealing.compress(state(*things)), gzipped, start=0, size=100, hide=True)
    answers += [page.outputs, page.resources]
    forms = {json.dumps(text)[1:-1] for text in written(secret)} | {secret}
    for answer in map(bytes, answers):
        assert not any(form.encode() in answer for form in forms)
    for one in find_contents(LoadedDocument(gzipped)).resources:
        assert one.digests == frozenset()


def test_scope_discloses_all_values(backend: Backend, seeing: Backend) -> None:
    backend.push(CASE)

    outputs = seeing.look("/outputs").json()["outputs"]

    assert {one["hidden"] for one in outputs} == {None}
